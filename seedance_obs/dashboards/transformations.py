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


def calculated(name: str, left: str, operator: str, right: str) -> JsonObject:
    """A column made of two others, under a name of its own."""
    sides: JsonObject = {
        side: {"matcher": {"id": "byName", "options": column}}
        for side, column in (("left", left), ("right", right))
    }
    binary: JsonObject = {**sides, "operator": operator}
    return {"id": "calculateField", "options": {"alias": name, "binary": binary, "mode": "binary"}}
