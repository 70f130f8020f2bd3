"""Any warehouse that Ibis speaks to."""
