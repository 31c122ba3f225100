"""A page of `stallwatch html` in headless Chromium, for the readers that use it.

Needs Chromium with its driver and Selenium (Debian: chromium, chromium-driver, python3-selenium).
"""

import json
import pathlib
import sys

from checks import Fault, begin_again, equal

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.support.wait import WebDriverWait
except ImportError as missing:
    begin_again(missing)


def start():
    """Starts the browser; exits with status 69 if there is none."""
    for program in ["/usr/bin/chromium", "/usr/bin/chromedriver"]:
        if not pathlib.Path(program).exists():
            print(f"{program} is missing: run `make test`, which installs it", file=sys.stderr)
            sys.exit(69)
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in [
        "--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=1360,1150",
        # Chromium's sandbox does not run as root, and CI often runs as root; the page is our own.
        "--no-sandbox",
        # Disable Chromium's own background traffic.
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
    ]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


def run(check, document, arguments):
    """Runs `check(driver, *arguments)` in a browser and prints the text that it returns; returns the exit status."""
    if len(arguments) != check.__code__.co_argcount - 1:
        print(document, file=sys.stderr)
        return 64
    driver = start()
    try:
        print(check(driver, *arguments))
    except Fault as fault:
        print(fault)
        return 1
    finally:
        driver.quit()
    return 0


class Page:
    def __init__(self, driver, address):
        self.driver = driver
        # An address that differs only after # loads nothing.
        driver.get("about:blank")
        driver.get(address)
        WebDriverWait(driver, 120).until(lambda driver: self.script("return Boolean(window.stallwatch)"))

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def state(self):
        return self.script("return stallwatch.state()")

    def press(self, *keys):
        """Sends keys to the focused element."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()
        return self.state()

    def focused(self):
        return self.script("return document.activeElement.id || document.activeElement.parentElement.id")

    def text(self, id):
        return self.script("return document.getElementById(arguments[0]).textContent", id)

    def is_shown(self, id):
        return self.script("return document.getElementById(arguments[0]).checkVisibility()", id)

    def resize(self, width):
        """Gives the page that width and 900 pixels of height, and waits until it is drawn."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.draw()

    def draw(self):
        self.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")

    def hash(self):
        return self.script("return location.hash")

    def wait(self, condition, what):
        """Waits until a script's expression is true."""
        WebDriverWait(self.driver, 120).until(lambda driver: self.script(f"return Boolean({condition})"), what)


def texts_without_scripts(driver, address):
    """The texts that a browser shows, and reads to the blind, if it runs no scripts."""
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get("about:blank")
        driver.get(address)
        nodes = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        shown = [node for node in nodes if not node["ignored"] and node["role"]["value"] == "StaticText"]
        return [node["name"]["value"] for node in shown]
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def check_silence(driver, address):
    """Checks that nothing is on the console, and that nothing but the page itself was loaded."""
    equal(driver.get_log("browser"), [], "what is on the console")
    requests = set()
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
            requests.add(message["params"].get("request", message["params"])["url"].partition("#")[0])
    # The empty icon in the page's head is a data URL: a request without network traffic.
    equal({url for url in requests if not url.startswith(("data:", "about:"))}, {address}, "what was loaded")
