"""Changing what was said: edits, replies, the menu, reactions."""
import re

from acts import choose, eventually, expect, field, keyboard, open_menu, row, say, sent, stays, texts

POSTS = re.compile(r"/v1/rooms/[^/]+/messages$")


def test_up_in_an_empty_field_edits_the_last_of_my_messages(people, service, room):
    page = people.enter(room)
    say(page, "mistkae")
    sent(page, "mistkae")
    service.post(room, "meanwhile")
    expect(row(page, "meanwhile")).to_be_visible()
    field(page).press("ArrowUp")
    expect(field(page)).to_have_value("mistkae")
    expect(page.locator(".purpose")).to_contain_text("Editing your message")
    field(page).fill("mistake")
    field(page).press("Enter")
    expect(row(page, "mistake").locator(".edited")).to_have_text("edited")
    assert field(page).input_value() == ""
    assert service.messages(room)[0]["text"] == "mistake"
    field(page).fill("one\ntwo")
    field(page).press("ArrowUp")
    assert field(page).evaluate("(field) => [field.value, field.selectionStart]") == ["one\ntwo", 3]
    assert page.locator(".purpose").is_hidden()


def test_cancelling_an_edit_brings_the_draft_back(people, service, room):
    page = people.enter(room)
    say(page, "said")
    sent(page, "said")
    field(page).fill("a draft")
    choose(page, "said", "edit")
    expect(field(page)).to_have_value("said")
    field(page).press_sequentially(" and more")
    field(page).press("Escape")
    assert field(page).input_value() == "a draft"
    assert texts(page) == ["said"]


def test_a_message_deleted_while_it_is_edited_leaves_its_text_as_a_draft(people, service, room):
    page = people.enter(room)
    say(page, "said")
    sent(page, "said")
    choose(page, "said", "edit")
    field(page).fill("said better")
    service.delete(room, service.messages(room)[0])
    expect(page.locator(".row .text")).to_have_text("Message deleted")
    expect(page.locator(".composer .error")).to_contain_text("deleted meanwhile")
    assert field(page).input_value() == "said better"
    page.reload()
    people.ready(page)
    assert field(page).input_value() == "said better"


def test_a_message_edited_elsewhere_meanwhile_is_asked_about(people, service, room):
    page = people.enter(room)
    say(page, "said")
    sent(page, "said")
    choose(page, "said", "edit")
    field(page).fill("said here")
    service.edit(room, service.messages(room)[0], "said there")
    expect(page.locator(".composer .error")).to_contain_text("changed elsewhere")
    assert service.messages(room)[0]["text"] == "said there"
    page.locator(".save-edit").click()
    expect(row(page, "said here")).to_be_visible()
    assert service.messages(room)[0]["text"] == "said here"


def test_the_text_of_an_edit_from_elsewhere_can_be_taken(people, service, room):
    page = people.page()
    # Told of nothing: it is the server that refuses.
    page.add_init_script("window.WebSocket = class { close() {} send() {} };")
    people.enter(room, page=page)
    say(page, "said")
    sent(page, "said")
    choose(page, "said", "edit")
    field(page).fill("said here")
    service.edit(room, service.messages(room)[0], "said there")
    page.locator(".save-edit").click()
    expect(row(page, "said there")).to_be_visible()
    page.locator(".theirs").click()
    expect(field(page)).to_have_value("said there")
    expect(page.locator(".composer .error")).to_have_text("")
    page.locator(".save-edit").click()
    expect(page.locator(".purpose")).to_be_hidden()
    assert service.messages(room)[0]["text"] == "said there" and service.messages(room)[0]["revision"] == 1


def test_editing_scrolls_the_message_into_view(people, service, room):
    page = people.enter(room)
    say(page, "far up")
    sent(page, "far up")
    service.fill(room, 45)
    expect(row(page, "message 44")).to_be_visible()
    field(page).press("ArrowUp")
    expect(row(page, "far up")).to_be_in_viewport()


def test_a_reply_quotes_and_leads_to_what_it_answers(people, service, room):
    first = service.post(room, "the question")
    service.fill(room, 80)
    page = people.enter(room)
    service.post(room, "the answer", by="grace", reply_to=first["id"])
    quote = row(page, "the answer").locator(".quote")
    expect(quote).to_contain_text("the question")
    quote.click()
    expect(row(page, "the question")).to_be_in_viewport()
    choose(page, "the question", "reply")
    expect(page.locator(".purpose")).to_contain_text("Reply to ada")
    say(page, "mine too")
    sent(page, "mine too")
    assert service.messages(room)[-1]["reply_to"] == first["id"]


# Menu and reactions

def test_the_menu_offers_editing_for_ones_own_only(people, service, room):
    service.post(room, "theirs")
    page = people.enter(room)
    say(page, "mine")
    sent(page, "mine")
    def entries(text):
        found = open_menu(page, text).locator("[data-action]").evaluate_all("(all) => all.map((each) => each.dataset.action)")
        page.keyboard.press("Escape")
        expect(page.locator(".menu")).to_have_count(0)
        return found
    assert entries("mine") == ["reply", "copy", "edit", "remove", "cancel"]
    assert entries("theirs") == ["reply", "copy", "cancel"]
    row(page, "theirs").locator(".bubble").click(button="right")
    expect(page.locator(".menu")).to_be_visible()
    page.mouse.click(5, 5)
    expect(page.locator(".menu")).to_have_count(0)
    row(page, "theirs").focus()
    page.keyboard.press("Shift+F10")
    expect(page.locator(".menu")).to_be_visible()


def test_deleting_asks_and_leaves_a_note(people, service, room):
    page = people.enter(room)
    for text in ("oops", "next"):
        say(page, text)
        sent(page, text)
    choose(page, "oops", "remove")
    page.locator(".question button").first.click()
    assert texts(page) == ["oops", "next"]
    choose(page, "oops", "remove")
    page.locator(".question .yes").click()
    expect(page.locator(".row .text").first).to_have_text("Message deleted")
    eventually(page, "document.activeElement.textContent.includes('next')")
    assert service.messages(room)[0]["deleted"]


def test_copying(people, service, room):
    service.post(room, "copy me")
    page = people.page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    people.enter(room, page=page)
    choose(page, "copy me", "copy")
    expect(page.locator("#status")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "copy me"


def test_a_long_press_opens_the_menu_unless_the_finger_moves(people, service, room):
    service.post(room, "press me")
    page = people.enter(room, has_touch=True, is_mobile=True, viewport={"width": 390, "height": 760})
    box = row(page, "press me").locator(".bubble").bounding_box()
    touch = keyboard(page)
    x, y = box["x"] + 20, box["y"] + 15
    def dispatch(kind, *points):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": px, "y": py} for px, py in points]})
    dispatch("touchStart", (x, y))
    dispatch("touchMove", (x, y + 25))
    stays(page, lambda: page.locator(".menu").count() == 0, 800)
    dispatch("touchEnd")
    dispatch("touchStart", (x, y))
    expect(page.locator(".menu")).to_be_visible()
    dispatch("touchEnd")
    expect(page.locator(".menu")).to_be_visible()


def test_a_double_click_on_a_reaction_settles_on_the_servers_state(people, service, room):
    message = service.post(room, "nice")
    service.react(room, message, "👍", "ada")
    service.react(room, message, "❤️", "grace")
    page = people.enter(room)
    chips = page.locator(".reaction")
    before = [chip.bounding_box() for chip in chips.all()]
    chips.first.dblclick()
    eventually(page, lambda: settled(service, room) == {"👍": ["ada"], "❤️": ["grace"]})
    eventually(page, lambda: chips.all_text_contents() == ["👍1", "❤️1"])
    assert [chip.bounding_box() for chip in chips.all()] == before
    chips.first.click()
    expect(chips.first).to_have_attribute("aria-pressed", "true")
    eventually(page, lambda: settled(service, room)["👍"] == ["ada", "bob"])
    expect(chips.first).to_have_text("👍2")
    open_menu(page, "nice").locator("[data-emoji='😂']").click()
    eventually(page, lambda: settled(service, room).get("😂") == ["bob"])
    expect(chips).to_have_count(3)


def test_a_press_on_a_reaction_counts_though_it_changes_meanwhile(people, service, room):
    message = service.post(room, "nice")
    service.react(room, message, "👍", "ada")
    page = people.enter(room)
    chip = page.locator(".reaction")
    chip.hover()
    page.mouse.down()
    service.react(room, message, "👍", "grace")
    expect(chip).to_have_text("👍2")
    page.mouse.up()
    eventually(page, lambda: settled(service, room) == {"👍": ["ada", "grace", "bob"]})
    expect(chip).to_have_text("👍3")


def settled(service, room):
    return {each["emoji"]: [user["id"] for user in each["users"]] for each in service.messages(room)[0].get("reactions", [])}
