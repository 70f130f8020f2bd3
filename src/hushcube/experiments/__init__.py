"""Owner-side experiments that compare answers with the truth. Their results are NOT private: never publish them."""
