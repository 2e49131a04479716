"""Analyses that listen to steps; each is one file and knows no other."""
