"""Short stories of people with a name: what they did, own, sent, can do. Written as `reports` are."""

import random
from collections.abc import Callable

from bugs.lab.sentences.facts import Fact, facts
from bugs.lab.sentences.names import CITIES, COMPARISONS, EXPERTS, NAMES, NUMBERS, WEEKDAYS


def journey(rng: random.Random) -> list[Fact]:
    """Somebody goes to a far city and comes back."""
    name, they, their = rng.choice(NAMES)
    start, end, other = rng.sample(CITIES, 3)
    went, how = rng.choice((("drove", "by car"), ("flew", "by air"), ("took the train", "by rail")))
    days, friends = rng.randint(8, 19), rng.randint(2, 5)
    season, not_season = rng.sample(("spring", "summer", "autumn", "winter"), 2)
    year = rng.randint(1995, 2019)
    return facts(f"""
        in the {season} of {year}, {name} {went} from {start} to {end} with {NUMBERS[friends]} friends
        + {name} travelled to {end} {how} / {name} did not travel alone
        + {NUMBERS[friends]} friends went along with {name} / {name} has been to {end}
        ? {name} was in {end} for the first time / {name} and the friends quarrelled on the way
        ? {name} had planned the journey for years
        - {name} travelled alone / {name} made the journey on foot
        - {name} made the journey in the {not_season} / {name} has never left {start}
        - the journey took {name} to {other} instead of {end}

        {they} returned home after {NUMBERS[days]} days
        + {name} was away for more than a week / {name} came back home / {name} was back within three weeks
        ? {name} was happy to sleep in {their} own bed / {name} lost some weight while {they} was away
        - {name} never came home / {name} was back after a single day / {name} was away for a whole year

        {they} wrote a postcard to {their} mother every evening
        + {name} wrote to {their} mother often / {their} mother was not forgotten
        + {name} wrote more than one postcard
        ? {their} mother kept all the postcards / some of the postcards got lost in the post
        - {name} did not write a single postcard / {name} wrote to {their} mother only once
    """)


def comparison(rng: random.Random) -> list[Fact]:
    """Three people in order of height, age or strength."""
    (a, *_), (b, *_), (c, *_) = rng.sample(NAMES, 3)
    more, less, same, habit = rng.choice(COMPARISONS)
    years = rng.randint(2, 9)
    return facts(f"""
        {a} is {more} than {b}, and {b} is {more} than {c}
        + {a} is {more} than {c} / {c} is {less} than {a} / {c} is not {more} than {b}
        + {b} is {less} than {a}
        ? {a} {habit} / {c} is jealous of {a} / {a} and {b} are cousins / {b} would like to be {more}
        - {c} is {more} than {a} / {a} is {less} than {b} / {a} and {c} {same} / {b} is {less} than {c}

        they have lived in the same house for {NUMBERS[years]} years
        + they share a house / they live under one roof
        + they have been living together for more than a year
        ? their house has a large garden / they share a house because it is cheap
        - they live in different houses / they moved in together last week
    """)


def household(rng: random.Random) -> list[Fact]:
    """A family, its home, its pet."""
    name, they, their = rng.choice(NAMES)
    sons, daughters = rng.sample(range(2, 6), 2)
    more, fewer = ("sons", "daughters") if sons > daughters else ("daughters", "sons")
    city, other = rng.sample(CITIES, 2)
    rooms = rng.randint(3, 8)
    pet, wrong = rng.sample(("cat", "dog", "parrot", "rabbit", "tortoise"), 2)
    return facts(f"""
        {name} has {NUMBERS[sons]} sons and {NUMBERS[daughters]} daughters
        + {name} has {NUMBERS[sons + daughters]} children / {name} has more {more} than {fewer}
        + {name} has both sons and daughters / {name} is a parent
        ? {name} would like to have another child / the eldest child of {name} is at university
        ? all the children look like {name} / {their} youngest child is a good singer
        - {name} has no children / {name} has only one child / {name} has more {fewer} than {more}
        - {name} has sons but no daughters / {name} has {NUMBERS[sons + daughters + 2]} children

        the family lives in {city} in a flat with {NUMBERS[rooms]} rooms
        + the home of the family is in {city} / the family lives in a flat
        + the flat has more than two rooms
        ? the flat is on the top floor / the rent for the flat is high / the flat belongs to an aunt
        - the family lives in {other} / the family lives on a farm / the flat has just one room

        {they} feeds the {pet} before breakfast
        + the {pet} is fed in the morning / there is a {pet} in the house / {name} gives food to the {pet}
        ? the {pet} was a present / the {pet} sleeps in the kitchen / the {pet} is getting fat
        - the {pet} is never fed / there are no animals in the house / the only pet is a {wrong}
    """)


def loan(rng: random.Random) -> list[Fact]:
    """Books borrowed and partly returned."""
    name, they, their = rng.choice(NAMES)
    books = rng.randint(4, 12)
    back = rng.randint(2, books - 2)
    number, part = NUMBERS[books], NUMBERS[back]
    subject, wrong = rng.sample(("astronomy", "cooking", "gardening", "chess", "volcanoes", "Egypt"), 2)
    borrowed, returned = (WEEKDAYS[day] for day in sorted(rng.sample(range(5), 2)))
    return facts(f"""
        {name} borrowed {number} books about {subject} on {borrowed} and took {part} back on {returned}
        + {name} returned fewer books than {they} borrowed / {name} borrowed books about {subject}
        + {name} kept some of the books after {returned} / {name} returned only a part of the books
        ? {name} found the books hard to understand / {name} is writing an essay about {subject}
        ? {name} has read every one of the books / {name} returned the books that {they} did not like
        - {name} returned all of the books on {returned} / the books were about {wrong}, not {subject}
        - {name} did not borrow any books / {name} borrowed only one book
        - {name} returned none of the books

        {their} library card is valid until December
        + {name} has a library card / {name}'s library card has an end date
        ? {name} will renew {their} library card / {name} has lost {their} library card before
        - {name} does not have a library card / {name}'s library card is valid for ever
    """)


def parcel(rng: random.Random) -> list[Fact]:
    """A parcel on its way."""
    (sender, *_), (name, *_) = rng.sample(NAMES, 2)
    city, other = rng.sample(CITIES, 2)
    kilos, days = rng.randint(3, 9), rng.randint(3, 8)
    content, kind, wrong = rng.choice(
        (("a pair of boots", "something to wear", "books"), ("six books", "something to read", "boots"),
         ("a cheese", "something to eat", "toys"), ("a chess set", "a game", "a cheese"))
    )  # fmt: skip
    return facts(f"""
        {sender} sent {name} a parcel from {city} with {content} in it
        + {name} was sent {kind} / {sender} sent something to {name} / there was {content} in the parcel
        ? {sender} and {name} are old friends / {name} had asked {sender} for {content}
        ? {sender} had wrapped everything in newspaper
        - the parcel was empty / {name} sent the parcel to {sender} / there was nothing but {wrong} in the parcel
        - the parcel came from {other}

        it weighed {NUMBERS[kilos]} kilos and arrived after {NUMBERS[days]} days
        + the parcel weighed more than two kilos / the parcel did not get lost
        + the parcel took more than a day to arrive
        ? sending the parcel was expensive / the parcel was damaged when it arrived
        - the parcel got lost in the post / the parcel weighed less than a kilo / the parcel arrived within an hour

        {name} was not at home, so a neighbour took the parcel
        + the parcel was given to a neighbour / {name} was out when the parcel arrived
        ? the neighbour opened the parcel / {name} was on holiday / {name} thanked the neighbour with a cake
        - {name} was at home when the parcel arrived / nobody took the parcel / {name} opened the door
    """)


def concert(rng: random.Random) -> list[Fact]:
    """An evening of music."""
    city, other = rng.sample(CITIES, 2)
    (player, they, _), (absent, *_) = rng.sample(NAMES, 2)
    instrument, wrong = rng.sample(("piano", "cello", "flute", "harp", "trumpet"), 2)
    pieces, seats = rng.randint(3, 9), rng.randrange(120, 900, 20)
    return facts(f"""
        last night {player} played the {instrument} at a concert in {city}
        + there was a concert in {city} last night / {player} can play the {instrument}
        + {player} made music in public
        ? {player} was nervous before the concert / {player} will play in {other} next week
        ? {player} played the {instrument} better than ever
        - {player} played the {wrong} instead of the {instrument} / the concert in {city} was cancelled
        - {player} cannot play the {instrument} / {player} did not play a single note

        all {seats} seats were taken
        + the concert was sold out / no seat was free / more than a hundred people were there
        ? some people had waited all night for a ticket / the seats were hard / most of the listeners were young
        - half of the seats were empty / nobody came to the concert / only one seat was taken

        {they} had to leave after {NUMBERS[pieces]} pieces because of a fever, and {absent} played the rest
        + {player} was ill / {absent} played at the concert too / {player} did not play until the end
        ? {absent} had not practised / the listeners liked {absent} better / {player} went straight to a doctor
        - {player} was perfectly healthy / {player} played until the end / nobody took over from {player}
    """)


def harvest(rng: random.Random) -> list[Fact]:
    """What a farm brought in."""
    name, *_ = rng.choice(NAMES)
    first, second, other = rng.sample(("apples", "pears", "plums", "cherries", "potatoes", "onions"), 3)
    low = rng.randint(3, 9)
    high = low + rng.randint(2, 11)
    workers = rng.randint(3, 12)
    return facts(f"""
        this year, {name}'s farm produced {high} tonnes of {first} and {low} tonnes of {second}
        + the farm produced more {first} than {second} / {second} grow on {name}'s farm
        + the farm produced fewer tonnes of {second} than of {first}
        ? the farm makes more money with {second} than with {first} / {name} grew up on the farm
        ? the harvest was better than last year
        - the farm produced more {second} than {first} / the farm did not produce any {first}
        - nothing grows on {name}'s farm / the farm produced only {other}

        {NUMBERS[workers]} people helped with the harvest, all of them students
        + {name} had help with the harvest / students worked on the farm / more than two students helped
        ? the students slept in the barn / the students were paid in cash / some of the students will come back
        - nobody helped with the harvest / none of the helpers was a student / {name} did all the work alone

        a tractor broke down in the first week
        + a machine stopped working / there was trouble with a tractor / there was a tractor on the farm
        ? the tractor was thirty years old / the repair cost a fortune / {name} bought a new tractor
        - the tractor worked well from beginning to end / there was no tractor on the farm
    """)


def note(rng: random.Random) -> list[Fact]:
    """One short statement."""
    city, (name, _, their) = rng.choice(CITIES), rng.choice(NAMES)
    weather, wet, dry = rng.choice((("raining", "rain", "sunny and dry"), ("snowing", "snow", "hot and dry")))
    skill, expert = rng.choice(EXPERTS)
    room, wrong = rng.sample(("kitchen", "cellar", "garage", "bathroom", "attic"), 2)
    return [
        rng.choice(
            facts(f"""
        it was {weather} in {city}
        + there was {wet} in {city} / the weather in {city} was not dry
        ? it had been {weather} in {city} for days / the airport in {city} was closed
        - it was {dry} in {city} / there was no {wet} in {city}

        {name} is learning to {skill}
        + {name} is learning something / {name} is a beginner
        ? {name} is learning to {skill} for {their} job / {name} has a patient teacher
        - {name} {expert} / {name} refuses to learn to {skill}

        {name} is painting the {room}
        + someone is painting a room / {name} is not idle
        ? {name} is painting the {room} white / {name} will sell the house
        - {name} is asleep / {name} is painting the {wrong} instead of the {room}
    """)
        )
    ]


STORIES: tuple[Callable[[random.Random], list[Fact]], ...] = (
    journey, comparison, household, loan, parcel, concert, harvest, note,
)  # fmt: skip
