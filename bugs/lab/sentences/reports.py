"""Short reports of the kind that notices, newspapers and letters hold: the corpus beside its scenes.

Each function draws names and numbers and returns the facts of one report (in the notation of `facts`), the
leading one first; the others may be left out. A fact says nothing of what another one leaves open.
"""

import random
from collections.abc import Callable

from bugs.lab.sentences.facts import Fact, facts
from bugs.lab.sentences.names import CITIES, GOODS, NAMES, NUMBERS, PLANS, PRODUCTS, SKILLS, WEEKDAYS


def timetable(rng: random.Random) -> list[Fact]:
    """A train, its platform, its price and its stops."""
    city, other = rng.sample(CITIES, 2)
    platform, wrong = rng.sample(NUMBERS[1:13], 2)
    stops, hours = rng.randint(3, 9), rng.randint(2, 6)
    price = rng.randrange(14, 80, 2)
    time = f"{rng.randint(6, 11)}:{rng.randrange(10, 60, 5)} in the morning"
    return facts(f"""
        the train to {city} leaves at {time} from platform {platform}
        + there is a train to {city} before noon / platform {platform} is used by the train to {city}
        + the train to {city} does not leave in the evening
        ? the train to {city} is usually full / the train to {city} is ten minutes late today
        ? many people take the train to {city} to go to work
        - the train leaves from platform {wrong} / the train to {city} leaves late in the evening
        - the train on platform {platform} goes to {other} instead of {city}

        the journey takes {NUMBERS[hours]} hours
        + the journey takes longer than an hour / the journey is over within {NUMBERS[hours + 2]} hours
        ? the journey is more comfortable at night / most of the journey is through mountains
        - the journey takes less than an hour / the journey takes {NUMBERS[hours + 3]} hours

        the train stops {NUMBERS[stops]} times on the way
        + the train stops more than once on the way
        + the train makes several stops
        ? the longest of the stops is in a small village / passengers may get off to buy food at each stop
        - the train goes all the way without a stop / the train stops {NUMBERS[stops + 4]} times on the way

        a ticket costs {price} euros, but children under six travel free
        + a child of four does not need to pay / adults have to pay for the train
        ? tickets are cheaper on the internet / the price of a ticket went up last year
        - everybody travels free / a ticket costs {price + 5} euros
        - a child of four pays the full price
    """)


def factory(rng: random.Random) -> list[Fact]:
    """A factory, what it makes, and who works there."""
    city, other = rng.sample(CITIES, 2)
    (product, kind), (wrong, _) = rng.sample(PRODUCTS, 2)
    hundreds = rng.randint(2, 9)
    people = hundreds * 100 + rng.randrange(10, 100, 10)
    share, less = rng.choice((("a third", "half"), ("a quarter", "half"), ("a fifth", "a third")))
    return facts(f"""
        the factory in {city} makes {product} and employs {people} people
        + more than {hundreds}00 people work at the factory / the factory produces {kind}
        + fewer than {hundreds + 1}00 people work at the factory / {product} are made in {city}
        ? the factory sells most of its {product} abroad / the factory is the largest employer in {city}
        ? the factory will hire more people next year
        - the factory makes {wrong}, not {product} / fewer than {hundreds}00 people work at the factory
        - the factory stands in {other} / nobody works at the factory

        {share} of the workers are on the night shift
        + less than {less} of the workers are on the night shift / some people work in the factory at night
        ? workers on the night shift are paid more / the night shift is less popular than the day shift
        - nobody works in the factory at night / all of the workers are on the night shift

        lunch in the canteen is free for everyone
        + the workers do not pay for lunch in the canteen / the factory has a canteen
        ? the soup in the canteen is very good / the canteen was painted last month
        - the workers have to pay for lunch in the canteen / the factory has no canteen
    """)


def museum(rng: random.Random) -> list[Fact]:
    """Opening hours, entrance fee, and the age of the building."""
    what, city = rng.choice(("museum", "gallery", "castle", "aquarium")), rng.choice(CITIES)
    opens, closes, wrong = rng.randint(8, 10), rng.randint(5, 7), rng.randint(2, 3)
    price, floors, year = rng.randint(4, 15), rng.randint(2, 5), rng.randint(1710, 1919)
    return facts(f"""
        the {what} in {city} is open from {NUMBERS[opens]} in the morning until {NUMBERS[closes]} in the evening
        + the {what} is open at noon / visitors can see the {what} during the day
        + the {what} is closed at midnight
        ? the {what} is most crowded around noon / the {what} has a new director
        ? the {what} is popular with families
        - the {what} opens only at night / the {what} closes at {NUMBERS[wrong]} in the afternoon
        - the {what} never closes

        the building is from {year} and has {NUMBERS[floors]} floors
        + the building is more than a hundred years old / the building has more than one floor
        + the building was finished before the year 1950
        ? the building is made of red brick / the building was once a school / the building needs a new roof
        - the building has only one floor / the building was finished five years ago
        - the building has {NUMBERS[floors + 3]} floors

        adults pay {NUMBERS[price]} euros and students pay nothing
        + adults pay more than students / students do not need any money to get in / not everyone has to pay
        ? students have to show a card / the money is used for repairs
        - students pay more than adults / adults do not have to pay / everyone pays the same price

        taking photographs is forbidden
        + visitors may not take pictures / nobody is allowed to take photographs
        ? many visitors take photographs anyway / the guards are strict
        - visitors are welcome to take photographs / everybody may take pictures
    """)


def match(rng: random.Random) -> list[Fact]:
    """The result of a match."""
    home, away = rng.sample(CITIES, 2)
    game = rng.choice(("football", "handball", "hockey", "water polo"))
    low = rng.randint(2, 7)
    high = low + rng.randint(1, 6)
    thousands, minutes = rng.randint(3, 60), rng.randint(3, 19)
    day, wrong = rng.sample((*WEEKDAYS, "Saturday", "Sunday"), 2)
    return facts(f"""
        on {day}, {home} beat {away} at {game} by {NUMBERS[high]} goals to {NUMBERS[low]}
        + {away} lost the match / {home} scored more goals than {away}
        + {home} won the match against {away} / there was a {game} match on {day}
        ? {home} will win the championship / {away} played without its best player
        ? {home} and {away} are old rivals / the referee made some mistakes
        - {away} won the match / the match ended in a draw / {away} did not score at all
        - {home} was beaten by {away} / the match was played on {wrong}

        the match was watched by {thousands},000 people in the stadium
        + the match had more than two thousand spectators / the stadium was not empty
        ? the stadium was sold out / most of the people in the stadium were men
        - there was nobody in the stadium / the match had {thousands + 4},000 spectators
        - fewer than a hundred people saw the match

        the captain of the winning team hurt a knee after {NUMBERS[minutes]} minutes and could not go on
        + the captain of the winning team was injured / the captain did not play until the end
        + someone was injured
        ? the captain will miss the next match / the captain was hurt by another player
        - the captain played until the end / nobody was injured / the captain hurt a finger, not a knee
    """)


def pupils(rng: random.Random) -> list[Fact]:
    """What the pupils of a class can do."""
    number, few = rng.randint(15, 32), rng.randint(2, 6)
    skill, harder = rng.choice(SKILLS)
    (teacher, *_), (other, *_) = rng.sample(NAMES, 2)
    subject = rng.choice(("history", "music", "geography", "biology", "art"))
    return facts(f"""
        all {number} pupils in the class can {skill}, but only {NUMBERS[few]} of them can {harder}
        + every pupil in the class can {skill} / most of the pupils cannot {harder}
        + more pupils can {skill} than can {harder} / some of the pupils can {harder}
        ? more of the pupils will learn to {harder} next year
        ? the pupils are proud that they can {skill} / the pupils who can {harder} are the oldest ones
        - none of the pupils can {harder} / some of the pupils cannot {skill}
        - every pupil in the class can {harder} / nobody in the class can {skill}

        their {subject} teacher is called {teacher}
        + {teacher} teaches {subject} / {teacher} is a teacher / the pupils learn {subject}
        ? {teacher} is the most popular teacher at the school / {teacher} has two degrees
        - {teacher} is one of the pupils / the pupils do not have any teachers
        - the {subject} teacher is called {other}
    """)


def degrees(rng: random.Random) -> list[Fact]:
    """Temperatures on two days."""
    city, other = rng.sample(CITIES, 2)
    first = rng.randint(12, 30)
    second = rng.choice([degrees for degrees in range(12, 31) if abs(degrees - first) > 2])
    warm, cold = ("Saturday", "Sunday") if first > second else ("Sunday", "Saturday")
    return facts(f"""
        in {city}, it was {first} degrees on Saturday and {second} degrees on Sunday
        + {warm} was warmer than {cold} in {city} / {cold} was the cooler of the two days
        + the temperature was not the same on both days / it was above ten degrees on both days
        ? it was warmer in {other} than in {city} / the people of {city} spent {warm} outdoors
        ? the forecast had been wrong / the swimming pools in {city} were full on {warm}
        - {cold} was warmer than {warm} / it was equally warm on both days / it was freezing on both days
        - the temperature on {cold} was higher than on {warm}

        there was a storm on Monday, and two roads were closed because of fallen trees
        + the weather was bad on Monday / some trees fell down / more than one road was closed
        ? the roads were open again by Tuesday / the storm came from the sea / a car was hit by a tree
        - the weather was calm on Monday / no trees fell down / all the roads stayed open
    """)


def prices(rng: random.Random) -> list[Fact]:
    """What things cost at a market stall."""
    (dear, the_dear), (cheap, the_cheap) = rng.sample(GOODS, 2)
    low = rng.randint(2, 6)
    high = low + rng.randint(1, 8)
    return facts(f"""
        at the market, {dear} costs {NUMBERS[high]} euros and {cheap} costs {NUMBERS[low]}
        + {cheap} is cheaper than {dear} / {dear} costs more than {cheap}
        + {cheap} does not cost as much as {dear}
        + {the_dear} and {the_cheap} together cost {NUMBERS[high + low]} euros
        ? {dear} was cheaper a year ago / few people buy {dear} / {the_cheap} is from a local farm
        ? the supermarket is cheaper than the market
        - {cheap} costs more than {dear} / {dear} and {cheap} have the same price
        - {dear} is the cheaper of the two / {cheap} costs {NUMBERS[high + 1]} euros

        the market is held every Thursday in front of the church
        + there is a market once a week / the market is not inside the church
        + people can go to the market on Thursdays
        ? the market has been held there for centuries / the church bells ring when the market opens
        - the market is held once a year / the market is held on Mondays only
        - the market takes place inside the church
    """)


def meeting(rng: random.Random) -> list[Fact]:
    """A meeting and its outcome."""
    who = rng.choice(("the city council", "the school board", "the committee", "the football club"))
    start, hours = rng.randint(1, 5), rng.randint(2, 4)
    votes, against = rng.randint(9, 15), rng.randint(2, 7)
    what, where = rng.choice(PLANS)
    return facts(f"""
        {who} met at {NUMBERS[start]} in the afternoon and talked for {NUMBERS[hours]} hours
        + the meeting lasted longer than an hour / {who} had a meeting after midday
        + {who} did not meet in the morning
        ? {who} meets every month / some members fell asleep during the meeting
        ? the meeting was held in English
        - the meeting was over after ten minutes / the meeting took place before breakfast
        - {who} cancelled the meeting

        {NUMBERS[votes]} members voted for {what} {where}, and {NUMBERS[against]} voted against it
        + most of the votes were in favour of {what} / not everyone wanted {what}
        + more members voted for the plan than against it
        ? {what} will cost a lot of money / the mayor had asked for {what}
        ? the members who voted against it were angry
        - nobody voted for {what} / everyone was in favour of {what}
        - more members voted against the plan than for it
    """)


REPORTS: tuple[Callable[[random.Random], list[Fact]], ...] = (
    timetable, factory, museum, match, pupils, degrees, prices, meeting,
)  # fmt: skip
