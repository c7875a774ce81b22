"""Attacks on a router: claims of difficulty, case and typing slips, and what they buy."""
