"""Numbers said about samples."""

import math


def median(values):
    ordered = sorted(values)
    n = len(ordered)
    if not n:
        return None
    middle = n // 2
    return ordered[middle] if n % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def percentile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else None


def spread(values):
    """Half of the distance between the smallest and the largest: what repeating a run changed."""
    return (max(values) - min(values)) / 2 if values else None


def jain(shares):
    """1 when all are equal, 1/n when one has everything."""
    squares = sum(s * s for s in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 0.0


def mean_and_cv(values):
    if not values:
        return 0.0, 0.0
    mean = sum(values) / len(values)
    variance = sum((v - mean) ** 2 for v in values) / len(values)
    return mean, math.sqrt(variance) / mean if mean else 0.0
