"""Which device reaches which over what. Pure: plain values in, plain values out."""
