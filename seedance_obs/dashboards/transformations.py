"""What Grafana makes of answers before a panel shows them.

Only transformations that npm's `@grafana/data` can run are used, so that tests can run all.
"""

from seedance_obs.dashboards.theme import JsonObject


def rows(ref_id: str) -> tuple[JsonObject, JsonObject]:
    """A query made by `queries.shape.columns` as one frame with real field names."""
    only: JsonObject = {"id": "byRefId", "options": ref_id}
    cells: JsonObject = {"mode": "columns", "valueLabel": "stat"}
    return (
        {"id": "labelsToFields", "filter": only, "options": cells},
        {"id": "merge", "filter": only, "options": {}},
    )


def matrix(row: str, column: str, value: str) -> tuple[JsonObject, ...]:
    r"""A panel's only query, made by `columns`, as a row for each value of one label.

    The first column is called `row\column`; the others have the values of the label `column` as
    their names. Grafana keeps the order in which these come, so columns are sorted before, and rows
    after, since a row without a first cell would be out of place.
    """
    options: JsonObject = {
        "columnField": column,
        "emptyValue": "null",
        "rowField": row,
        "valueField": value,
    }
    pairs: JsonObject = {"id": "groupingToMatrix", "options": options}
    return (*rows("A"), sorted_by(column), pairs, sorted_by(f"{row}\\{column}"))


def sorted_by(name: str, *, descending: bool = False) -> JsonObject:
    """The rows of every frame, sorted by a column."""
    order: JsonObject = {"field": name, "desc": True} if descending else {"field": name}
    return {"id": "sortBy", "options": {"fields": {}, "sort": [order]}}


def in_order(shown: str, *, hidden: str) -> JsonObject:
    """Columns in this order, others hidden; names by spaces."""
    order: JsonObject = {name: place for place, name in enumerate(shown.split())}
    without: JsonObject = dict.fromkeys(hidden.split(), True)
    return {"id": "organize", "options": {"excludeByName": without, "indexByName": order}}


# A query without an answer still gives a frame, one without fields, which a node graph takes for
# broken nodes; without it the panel says that there is nothing.
ANSWERED: JsonObject = {"id": "filterFieldsByName", "options": {"include": {"pattern": "/.+/"}}}


def spread(ref_id: str, height: int) -> tuple[JsonObject, ...]:
    """Nodes at the places that `queries.node_graph.places` gave them, which needs their rows.

    Rows are sorted by kind and, among those of one kind, by id, so that nodes stay where they
    were from one answer to the next.
    """
    only: JsonObject = {"id": "byRefId", "options": f"/{ref_id}/"}
    steps: tuple[JsonObject, ...] = (
        {"alias": "row", "mode": "index"},
        _arithmetic("row + shift", alias="place"),
        _arithmetic("place * slot", alias="down"),
        _arithmetic(f"down - {height // 2}", alias="fixedy"),
        _arithmetic("fixedy * fixedy", alias="square"),
        _arithmetic("square * bend", alias="aside"),
        _arithmetic("left + aside", alias="fixedx"),
    )
    return (
        sorted_by("id"),
        {**sorted_by("kind"), "filter": only},
        *(_calculated(each, only) for each in steps),
    )


def _calculated(options: JsonObject, only: JsonObject) -> JsonObject:
    return {"id": "calculateField", "filter": only, "options": options}


def _arithmetic(formula: str, *, alias: str) -> JsonObject:
    left, operator, right = formula.split()
    operands: JsonObject = {"left": left, "operator": operator, "right": right}
    return {"alias": alias, "binary": operands, "mode": "binary"}


def called(names: JsonObject, *, hidden: str) -> JsonObject:
    """Fields, by name, by what a legend calls them, others hidden; fields keep their names."""
    without: JsonObject = dict.fromkeys(hidden.split(), True)
    return {"id": "organize", "options": {"excludeByName": without, "renameByName": names}}


def calculated(name: str, formula: str) -> JsonObject:
    """A column made of two others, such as `used + wasted`, under a name of its own."""
    return {"id": "calculateField", "options": _arithmetic(formula, alias=name)}
