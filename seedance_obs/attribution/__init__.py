"""Who used what, in integers that add up. Pure: plain values in, plain values out."""
