from fastapi.routing import APIRoute

from service.api.routes.router import api_router
from service.app import ROUTERS, bare


def test_a_route_of_the_api_is_whole_as_soon_as_it_is_declared() -> None:
    router = api_router("things", "/things", include_in_schema=False)

    @router.get("/{thing}")
    def show(thing: str) -> str:
        return thing

    (route,) = router.routes
    assert isinstance(route, APIRoute)
    assert route.path == "/api/v1/things/{thing}"
    assert route.tags == ["things"]
    assert route.unique_id == "test_router_show"
    assert not route.include_in_schema


def test_the_application_takes_the_routes_as_they_are() -> None:
    declared = [route for router in ROUTERS for route in router.routes]
    assert len(declared) > 50
    assert [route for route in bare().routes if isinstance(route, APIRoute)] == declared
