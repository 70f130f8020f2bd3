"""The algebra of marginals, per residual space.

V_B, for a set of attributes B, holds the tables that vary with exactly the attributes of B:
centred (sums zero) along each axis in B, constant along the others. The spaces are orthogonal, their dimensions are
m_B = prod_{i in B} (n_i - 1), and a marginal A sees exactly the V_B with B inside A. Every strategy on marginals acts
as a number on each V_B, so nothing ever needs a vector of the domain's size.
"""
