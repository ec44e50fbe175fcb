"""The page in a real browser: ``make test-browser``. Needs Selenium, Chromium and its driver; skipped elsewhere."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from biclique import BicliqueSpectralClustering
from biclique.report.markup import shown
from tests.report.made import HOSTILE

webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="Chromium and chromedriver are not installed")


def rows():
    """Two groups that touch and one far away; the columns are the map."""
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(50, 2)) * 0.6 + centre for centre in ([0, 0], [3, 0], [9, 6])])
    return np.concatenate([X, [[4.0, 9.0]]])


def identity(row):
    return f"{HOSTILE[row] if row in (0, 2, 3) else 'row'} {row}"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    X = rows()
    model = BicliqueSpectralClustering(3, affinity="rbf", order=2, row_normalize=True, random_state=0).fit(X)
    path = tmp_path_factory.mktemp("page") / "report.html"
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["<script>alert(1)</script>", "width"])
    model.report(X, path, table=frame, ids=[identity(row) for row in range(len(X))], title="test", n_splits=2)
    return model, X, path


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


def opened(browser, path, *, width=1200, height=900, dark=False, mobile=False):
    """The page, and no messages on the console."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    browser.get(path.as_uri())
    assert browser.get_log("browser") == []
    return browser


@pytest.fixture
def page(made, browser):
    """The page, and no messages on the console after what a test does with it."""
    yield opened(browser, made[2])
    assert browser.get_log("browser") == []


def run(browser, script, *arguments):
    return browser.execute_script(script, *arguments)


def choose(browser, name, value):
    """Set a slider or a list, as a person does."""
    script = """
        const control = document.getElementById(arguments[0]);
        control.value = arguments[1];
        control.dispatchEvent(new Event(control.tagName === "SELECT" ? "change" : "input"));"""
    run(browser, script, name, value)


def pointer(browser, kind, x, y, **more):
    """A pointer event on the map, at a place of it."""
    script = """
        const map = document.getElementById("map"), box = map.getBoundingClientRect();
        const options = Object.assign({bubbles: true, pointerId: 1, clientX: box.left + arguments[1],
            clientY: box.top + arguments[2]}, arguments[3]);
        map.setPointerCapture = () => {};
        map.dispatchEvent(new PointerEvent(arguments[0], options));"""
    run(browser, script, kind, x, y, more)


def where(browser, row):
    return run(browser, "return bicliqueMap.where(arguments[0])", row)


def colour_at(browser, row):
    """The colour of the map in the middle of a row's mark."""
    script = """
        bicliqueMap.draw();
        const map = document.getElementById("map"), [x, y] = bicliqueMap.where(arguments[0]);
        const ratio = map.width / map.clientWidth, copy = document.createElement("canvas");
        copy.width = copy.height = 1;
        const pen = copy.getContext("2d", {willReadFrequently: true});
        pen.drawImage(map, -Math.round(x * ratio), -Math.round(y * ratio));
        return [...pen.getImageData(0, 0, 1, 1).data];"""
    return tuple(run(browser, script, row))


def test_a_page_opens_quickly(page):
    assert float(run(page, "return document.documentElement.dataset.ready")) < 2000
    assert "3 clusters" in page.find_element("css selector", ".sentence").text
    assert run(page, "return document.images.length + document.querySelectorAll('link,iframe').length") == 0


def test_pointing_at_a_row_tells_its_name_and_values(made, page):
    model, X, _ = made
    for row in (0, 2, 149, 150):
        x, y = where(page, row)
        pointer(page, "pointermove", x, y)
        text = page.find_element("id", "tip").text
        assert text.splitlines()[0] == shown(identity(row), 40)
        assert f"cluster {model.labels_[row]}" in text
        assert f"width: {X[row, 1]:.4g}"[:9] in text
    assert "<script>alert(1)</script>: " in page.find_element("id", "tip").text  # a column's name


def test_a_lasso_selects_what_is_inside(made, page):
    _, X, _ = made
    inside = np.flatnonzero((X[:, 0] > 6.5) & (X[:, 1] > 3))
    places = np.array([where(page, int(row)) for row in inside])
    low, high = places.min(axis=0) - 6, places.max(axis=0) + 6
    corners = [(low[0], low[1]), (high[0], low[1]), (high[0], high[1]), (low[0], high[1])]
    page.find_element("id", "lasso").click()
    pointer(page, "pointerdown", *corners[0], button=0)
    for corner in (*corners[1:], corners[0]):
        pointer(page, "pointermove", *corner)
    pointer(page, "pointerup", *corners[0])
    assert run(page, "return bicliqueMap.selected()") == len(inside)
    assert f"{len(inside)} rows selected" in page.find_element("id", "state").text
    page.find_element("id", "copy").click()
    box = page.find_element("id", "ids")
    waiting = pytest.importorskip("selenium.webdriver.support.wait")
    waiting.WebDriverWait(page, 10).until(lambda _: box.is_displayed())
    assert sorted(box.get_attribute("value").split("\n")) == sorted(identity(row) for row in inside)


def downloaded(browser, button, tmp_path):
    """The file that a button makes."""
    script = """
        URL.createObjectURL = (made) => { window.made = made; return "#"; };
        document.getElementById(arguments[0]).click();
        window.made.text().then(arguments[1]);"""
    path = tmp_path / f"{button}.html"
    path.write_text(browser.execute_async_script(script, button), encoding="utf-8")
    return path


def test_a_name_is_shown_everywhere_kept_and_saved_with_the_page(made, browser, tmp_path):
    model, _, path = made
    opened(browser, path)
    name = HOSTILE[0]
    field = browser.find_element("css selector", ".naming[data-cluster='1']")
    field.send_keys(name)
    places = browser.find_elements("css selector", "bdi[data-name='1']")
    assert [one.text.strip() for one in places if one.is_displayed()] == [name] * 3  # legend, means and card
    assert f"cluster 1 {name}" in browser.find_element("id", "chosen").text
    opened(browser, path)
    assert browser.find_element("css selector", ".naming[data-cluster='1']").get_attribute("value") == name
    lines = downloaded(browser, "labels", tmp_path).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "row,id,cluster,name,probability"
    assert [int(line.split(",")[-3]) for line in lines[1:]] == model.labels_.tolist()
    copy = downloaded(browser, "save", tmp_path)
    run(browser, "localStorage.clear()")
    opened(browser, Path(copy))
    assert browser.find_element("css selector", ".naming[data-cluster='1']").get_attribute("value") == name
    run(browser, "localStorage.clear()")


def test_equal_rows_are_one_large_mark_and_labels_cover_none(browser, tmp_path):
    X = np.concatenate([np.repeat([[0.0, 0.0]], 90, axis=0), rows()[:50] + 30])
    path = tmp_path / "equal.html"
    model = BicliqueSpectralClustering(2, random_state=0).fit(X)
    model.report(X, path, n_splits=0)
    opened(browser, path)
    assert sorted(run(browser, "return bicliqueMap.marks()"))[-2:] == [1, 90]
    x, y = where(browser, 0)
    pointer(browser, "pointermove", x, y)
    assert "and 89 more at this place" in browser.find_element("id", "tip").text
    places = np.array([where(browser, row) for row in range(len(X))])
    for a, b, half in run(browser, "return bicliqueMap.labels()"):
        assert not ((np.abs(places[:, 0] - a) < half) & (np.abs(places[:, 1] - b) < 8)).any()


def touch(browser, kind, *places):
    """Fingers on the map, as the browser has them from a touch screen."""
    box = run(browser, "const box = document.getElementById('map').getBoundingClientRect(); return [box.left, box.top]")
    points = [{"x": box[0] + x, "y": box[1] + y, "id": number} for number, (x, y) in enumerate(places)]
    browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


@pytest.fixture
def phone(made, browser):
    """The page on a touch screen, with the map in sight."""
    opened(browser, made[2], width=360, height=740, mobile=True)
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2})
    run(browser, "document.getElementById('map').scrollIntoView({block: 'center'})")
    yield browser
    assert browser.get_log("browser") == []
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def test_two_fingers_zoom_the_map(phone):
    """From 100 to 200 pixels apart, and 20 pixels to the right."""
    before, scrolled = np.array([where(phone, row) for row in range(4)]), run(phone, "return window.scrollY")
    touch(phone, "touchStart", (100, 150), (200, 150))
    for share in (0.2, 0.4, 0.6, 0.8, 1):
        touch(phone, "touchMove", (100 - 30 * share, 150), (200 + 70 * share, 150))
    found = np.array([where(phone, row) for row in range(4)])
    np.testing.assert_allclose(found, 2 * (before - [150, 150]) + [170, 150], atol=0.5)
    touch(phone, "touchEnd")
    assert run(phone, "return window.scrollY") == scrolled
    assert run(phone, "return window.visualViewport.scale") == pytest.approx(1)


def test_a_finger_that_stays_after_a_pinch_moves_the_map(phone):
    x, y = where(phone, 150)
    first, second = ({"pointerId": number, "pointerType": "touch", "button": 0} for number in (7, 8))
    pointer(phone, "pointerdown", x, y, **first)
    pointer(phone, "pointerdown", x + 100, y, **second)
    pointer(phone, "pointerup", x + 100, y, **second)
    pointer(phone, "pointermove", x + 5, y + 3, **first)
    assert where(phone, 150) == pytest.approx([x + 5, y + 3])
    pointer(phone, "pointerup", x + 5, y + 3, **first)
    assert not phone.find_element("id", "tip").is_displayed()  # the mark below it was not tapped
    pointer(phone, "pointermove", x + 50, y, **first)
    assert where(phone, 150) == pytest.approx([x + 5, y + 3])


def test_two_fingers_end_a_lasso(phone):
    run(phone, "document.getElementById('lasso').click()")
    touch(phone, "touchStart", (20, 20))
    touch(phone, "touchMove", (340, 20))
    touch(phone, "touchMove", (340, 300))
    touch(phone, "touchStart", (340, 300), (20, 300))
    touch(phone, "touchEnd")
    assert run(phone, "return bicliqueMap.selected()") == 0


def test_a_tap_reads_a_mark(phone):
    touch(phone, "touchStart", where(phone, 150))
    touch(phone, "touchEnd")
    assert "row 150" in phone.find_element("id", "tip").text


def test_the_slider_and_a_column_recolour(made, page):
    _, X, _ = made
    script = """
        const data = JSON.parse(document.getElementById("data").textContent).path;
        return [data.orders.length, data.own, data.labels.map((text) => [...new Uint16Array(
            Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer)])];"""
    n_orders, own, labels = run(page, script)
    moved = [(at, row) for at in range(n_orders) for row in range(len(X)) if labels[at][row] != labels[own][row]]
    assert moved  # a row that the order moves to another cluster
    at, row = moved[0]
    before = colour_at(page, row)
    choose(page, "order", at)
    assert colour_at(page, row) != before
    assert "clustered anew" in page.find_element("id", "order-note").text
    sizes = np.bincount(labels[at], minlength=3)
    assert [line.text.split()[-1] for line in page.find_elements("css selector", ".legend li")] == [
        f"({size})" for size in sizes
    ]
    choose(page, "order", own)
    assert colour_at(page, row) == before
    choose(page, "colour", "0")  # by a column
    low, high = int(X[:, 0].argmin()), int(X[:, 0].argmax())
    assert colour_at(page, low) != colour_at(page, high)
    assert page.find_element("id", "scale").is_displayed()


def test_the_keyboard_reaches_everything(page):
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    reached = []
    for _ in range(40):
        page.switch_to.active_element.send_keys(keys.TAB)
        reached.append(run(page, "return document.activeElement.id || document.activeElement.tagName"))
    wanted = "view colour chosen order closer farther reset lasso map SUMMARY copy-command"
    assert set(wanted.split()) <= set(reached)
    board = page.find_element("id", "map")
    board.send_keys("n")
    assert page.find_element("id", "tip").is_displayed()
    x, _ = where(page, 0)
    board.send_keys(keys.ARROW_RIGHT)
    assert where(page, 0)[0] < x
    board.send_keys("+")
    board.send_keys("0")
    assert where(page, 0)[0] == pytest.approx(x)
    choose(page, "chosen", "0")
    assert run(page, "return bicliqueMap.selected()") > 0
    board.send_keys(keys.ESCAPE)
    assert run(page, "return bicliqueMap.selected()") == 0


@pytest.mark.parametrize(("name", "options"), [("dark", {"dark": True}), ("phone", {"width": 360, "height": 740})])
def test_dark_and_a_phone(made, browser, name, options):
    opened(browser, made[2], **options)
    across, shown = run(browser, "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert across <= shown
    script = "return Math.max(...[...document.querySelectorAll('td, th')].map((c) => c.getBoundingClientRect().right))"
    assert run(browser, script) <= shown
    assert run(browser, "const c = document.getElementById('matrix'); return c.width - c.clientWidth") == 0
    ground = run(browser, "return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(20, 24, 31)") == (name == "dark")
    script = "window.dispatchEvent(new Event(arguments[0])); return getComputedStyle(document.body).backgroundColor"
    if name == "dark":  # paper is light
        assert run(browser, script, "beforeprint") == "rgb(255, 255, 255)"
        assert run(browser, script, "afterprint") == "rgb(20, 24, 31)"


def test_what_the_policy_forbids_does_not_run(made, browser):
    opened(browser, made[2])
    script = """const found = document.createElement("script"); found.textContent = "window.hacked = 1";
        document.body.append(found); return window.hacked || 0"""
    assert run(browser, script) == 0
    messages = browser.get_log("browser")
    assert any("Content Security Policy" in message["message"] for message in messages)
