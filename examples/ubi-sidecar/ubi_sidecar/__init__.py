"""Connects a search application that speaks UBI (User Behavior Insights) with rankduel."""
