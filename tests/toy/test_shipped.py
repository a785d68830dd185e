from forethought import toy


def test_graphs_and_vectors_fit_the_tasks():
    tasks = toy.tasks()
    assert len(tasks) == 9
    assert toy.connectivity().align(tasks).ids == tasks.ids
    assert toy.evidence().align(tasks).ids == tasks.ids
    assert toy.embeddings().for_tasks(tasks).shape == (9, 16)
