"""Made-up baskets, for examples, pictures and the command line: nobody's purchases."""

from cloister.noise import Random

WORDS = ("tea", "milk", "jam", "bread", "butter", "eggs", "beer", "crisps", "cheese", "wine")
_BUNDLES = ({"tea", "milk"}, {"bread", "butter"}, {"beer", "crisps"}, {"bread", "butter", "cheese"})


def shop(baskets: int = 600) -> list[list[str]]:
    """Baskets in which some things go together, always the same ones.

    >>> len(shop()), shop(2)
    (600, [['bread', 'eggs', 'milk', 'tea', 'wine'], ['bread', 'butter', 'cheese', 'wine']])
    """
    coins = Random.deterministic(7).below(100, baskets * (len(WORDS) + len(_BUNDLES))).reshape(baskets, -1).tolist()
    found = []
    for row in coins:
        held = {word for word, coin in zip(WORDS, row, strict=False) if coin < 18}
        bundles = zip(_BUNDLES, row[len(WORDS) :], strict=True)
        found.append(sorted(held.union(*(bundle for bundle, coin in bundles if coin < 22))))
    return found
