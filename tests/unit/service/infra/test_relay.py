"""Messages between services: how topics are packed."""

from service.infra import relay


def test_topics_fill_messages_that_the_database_takes() -> None:
    topics = [f"job:{number:060}" for number in range(1000)]
    sent = list(relay.messages("me", topics))
    assert max(map(len, sent)) <= relay.MAX_BYTES
    assert [message.split(" ")[0] for message in sent] == ["me"] * len(sent)
    assert [topic for message in sent for topic in message.split(" ")[1:]] == topics


def test_nothing_to_tell_is_no_message() -> None:
    assert not list(relay.messages("me", []))
