"""A search site for the Linux manual pages, with six rankings that rankduel compares."""
