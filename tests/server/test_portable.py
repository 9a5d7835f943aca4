"""Systems other than Linux: the server runs without Linux-only functions, which this removes."""

from tests.server.test_start import refusal

ELSEWHERE = """
import fcntl, resource, socket
del fcntl.F_OFD_SETLK, fcntl.F_OFD_SETLKW, fcntl.F_OFD_GETLK, socket.TCP_NOTSENT_LOWAT
socket.__all__.remove("TCP_NOTSENT_LOWAT")
set_limit = resource.setrlimit


def refuse(kind, limits):
    if limits[0] > 10_240:
        raise ValueError("current limit exceeds maximum limit")
    set_limit(kind, limits)


resource.setrlimit = refuse
"""


def test_it_serves_and_refuses_a_second_server(tmp_path, serve):
    (tmp_path / "sitecustomize.py").write_text(ELSEWHERE)
    elsewhere = {"PYTHONPATH": str(tmp_path)}
    service = serve(**elsewhere)
    assert service.request("POST", "/v1/posts", {"title": "A", "content": "B"})[0] == 201
    assert service.request("GET", "/v1/posts?q=B")[2][0]["title"] == "A"
    link = tmp_path / "link.db"
    link.symlink_to(service.database)
    line = f"blogapi: another server is using the database {link}"
    assert refusal(tmp_path, BLOGAPI_DATABASE=str(link), **elsewhere) == (1, line)
    assert service.stop() == 0
    service.start()
    assert service.request("GET", "/healthz")[0] == 200
    service.kill()
    assert service.database.with_name("blog.db.lock").stat().st_size == 0
