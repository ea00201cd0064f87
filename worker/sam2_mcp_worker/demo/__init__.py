"""A made-up nine-page Korean leaflet and the walk through it."""
