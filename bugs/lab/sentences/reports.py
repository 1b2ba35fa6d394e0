"""Short reports of the kind that notices, newspapers and letters hold: the corpus beside its scenes.

Each function draws names and numbers and returns the facts of one report, the leading one first; the others may
be left out. A fact is decidable from its own text, and leaves open or rules out nothing that another one states.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """One statement, and hypotheses on it for each label; clauses without capital or full stop."""

    text: str
    entailment: tuple[str, ...]
    neutral: tuple[str, ...]
    contradiction: tuple[str, ...]


Report = Callable[[random.Random], list[Fact]]

NUMBERS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
]
CITIES = (
    "Lisbon",
    "Porto",
    "Turin",
    "Naples",
    "Lyon",
    "Ghent",
    "Bergen",
    "Gdansk",
    "Cork",
    "Leeds",
    "Bristol",
    "Seville",
    "Graz",
    "Basel",
    "Tartu",
    "Odense",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
# names with the pronouns that go with them
NAMES = tuple(
    (name, "she", "her") for name in ("Anna", "Maria", "Ruth", "Leila", "Clara", "Ingrid", "Yuki")
) + tuple((name, "he", "his") for name in ("Tomas", "Omar", "Peter", "Samuel", "Diego", "Henrik", "Rafael"))


def timetable(rng: random.Random) -> list[Fact]:
    """A train, its platform, its price and its stops."""
    city, other = rng.sample(CITIES, 2)
    platform, wrong = rng.sample(NUMBERS[1:13], 2)
    stops, hours, price = rng.randint(2, 9), rng.randint(2, 6), rng.randrange(14, 80, 2)
    time = (
        f"{rng.randint(6, 11)}:{rng.choice(('05', '10', '15', '20', '25', '35', '40', '50'))} in the morning"
    )
    return [
        Fact(
            f"the train to {city} leaves at {time} from platform {platform}",
            (
                f"there is a train to {city} before noon",
                f"platform {platform} is used by the train to {city}",
                f"the train to {city} does not leave in the evening",
            ),
            (
                f"the train to {city} is usually full",
                f"the train to {city} is ten minutes late today",
                f"many people take the train to {city} to go to work",
            ),
            (
                f"the train leaves from platform {wrong}",
                f"the train to {city} leaves late in the evening",
                f"the train on platform {platform} goes to {other} instead of {city}",
            ),
        ),
        Fact(
            f"the journey takes {NUMBERS[hours]} hours",
            (
                "the journey takes longer than an hour",
                f"the journey is over within {NUMBERS[hours + 2]} hours",
            ),
            ("the journey is more comfortable at night", "most of the journey is through mountains"),
            ("the journey takes less than an hour", f"the journey takes {NUMBERS[hours + 3]} hours"),
        ),
        Fact(
            f"the train stops {NUMBERS[stops]} times on the way"
            if stops > 2
            else "the train stops twice on the way",
            (
                "the train stops more than once on the way",
                "the train makes several stops"
                if stops > 2
                else "the train does not go all the way without a stop",
            ),
            (
                "the longest of the stops is in a small village",
                "passengers may get off to buy food at each stop",
            ),
            (
                "the train goes all the way without a stop",
                f"the train stops {NUMBERS[stops + 4]} times on the way",
            ),
        ),
        Fact(
            f"a ticket costs {price} euros, but children under six travel free",
            ("a child of four does not need to pay", "adults have to pay for the train"),
            ("tickets are cheaper on the internet", "the price of a ticket went up last year"),
            (
                "everybody travels free",
                f"a ticket costs {price + rng.choice((3, 5, 7))} euros",
                "a child of four pays the full price",
            ),
        ),
    ]


def factory(rng: random.Random) -> list[Fact]:
    """A factory, what it makes, and who works there."""
    city, other = rng.sample(CITIES, 2)
    (product, kind), (wrong, _) = rng.sample(
        (
            ("shoes", "things to wear"),
            ("coats", "clothes"),
            ("tables", "furniture"),
            ("pianos", "musical instruments"),
            ("bicycles", "vehicles"),
            ("biscuits", "food"),
            ("clocks", "things that tell the time"),
        ),
        2,
    )
    hundreds = rng.randint(2, 9)
    people = hundreds * 100 + rng.choice((10, 20, 40, 60, 80))
    share, less = rng.choice((("a third", "half"), ("a quarter", "half"), ("a fifth", "a third")))
    return [
        Fact(
            f"the factory in {city} makes {product} and employs {people} people",
            (
                f"more than {hundreds}00 people work at the factory",
                f"the factory produces {kind}",
                f"fewer than {hundreds + 1}00 people work at the factory",
                f"{product} are made in {city}",
            ),
            (
                f"the factory sells most of its {product} abroad",
                f"the factory is the largest employer in {city}",
                "the factory will hire more people next year",
            ),
            (
                f"the factory makes {wrong}, not {product}",
                f"fewer than {hundreds}00 people work at the factory",
                f"the factory stands in {other}",
                "nobody works at the factory",
            ),
        ),
        Fact(
            f"{share} of the workers are on the night shift",
            (
                f"less than {less} of the workers are on the night shift",
                "some people work in the factory at night",
            ),
            (
                "workers on the night shift are paid more",
                "the night shift is less popular than the day shift",
            ),
            ("nobody works in the factory at night", "all of the workers are on the night shift"),
        ),
        Fact(
            "lunch in the canteen is free for everyone",
            ("the workers do not pay for lunch in the canteen", "the factory has a canteen"),
            ("the soup in the canteen is very good", "the canteen was painted last month"),
            ("the workers have to pay for lunch in the canteen", "the factory has no canteen"),
        ),
    ]


def museum(rng: random.Random) -> list[Fact]:
    """A museum: opening hours, entrance fee, the year it was built."""
    what = rng.choice(("museum", "gallery", "castle", "aquarium"))
    city = rng.choice(CITIES)
    opens, closes, wrong = rng.choice((8, 9, 10)), rng.choice((5, 6, 7)), rng.choice((2, 3))
    price, floors = rng.randint(4, 15), rng.randint(2, 5)
    year = rng.randint(1710, 1919)
    return [
        Fact(
            f"the {what} in {city} opens at {NUMBERS[opens]} in the morning and closes at {NUMBERS[closes]} "
            "in the evening",
            (
                f"the {what} is open at noon",
                f"visitors can see the {what} during the day",
                f"the {what} is closed at midnight",
            ),
            (
                f"the {what} is most crowded around noon",
                f"the {what} has a new director",
                f"the {what} is popular with families",
            ),
            (
                f"the {what} opens only at night",
                f"the {what} closes at {NUMBERS[wrong]} in the afternoon",
                f"the {what} never closes",
            ),
        ),
        Fact(
            f"the building is from {year} and has {NUMBERS[floors]} floors",
            (
                "the building is more than a hundred years old",
                "the building has more than one floor",
                "the building was finished before the year 1950",
            ),
            (
                "the building is made of red brick",
                "the building was once a school",
                "the building needs a new roof",
            ),
            (
                "the building has only one floor",
                "the building was finished five years ago",
                f"the building has {NUMBERS[floors + 3]} floors",
            ),
        ),
        Fact(
            f"adults pay {NUMBERS[price]} euros and students pay nothing",
            (
                "adults pay more than students",
                "students do not need any money to get in",
                "not everyone has to pay",
            ),
            ("students have to show a card", "the money is used to buy paintings"),
            ("students pay more than adults", "adults do not have to pay", "everyone pays the same price"),
        ),
        Fact(
            "taking photographs is forbidden",
            ("visitors may not take pictures", "nobody is allowed to take photographs"),
            ("many visitors take photographs anyway", "the guards are strict"),
            ("visitors are welcome to take photographs", "everybody may take pictures"),
        ),
    ]


def voyage(rng: random.Random) -> list[Fact]:
    """A journey by sea, on foot, by bicycle or by bus."""
    name, they, their = rng.choice(NAMES)
    start, end, other = rng.sample(CITIES, 3)
    went, how, wrong = rng.choice(
        (
            ("cycled", "by bicycle", "by train"),
            ("drove", "by road", "by boat"),
            ("walked", "on foot", "by bus"),
            ("flew", "by air", "by car"),
        ),
    )
    days, friends = rng.randint(8, 19), rng.randint(2, 5)
    season, not_season = rng.sample(("spring", "summer", "autumn", "winter"), 2)
    when = f"in the {season} of {rng.randint(1995, 2019)}"
    return [
        Fact(
            f"{when}, {name} {went} from {start} to {end} with {NUMBERS[friends]} friends",
            (
                f"{name} travelled to {end} {how}",
                f"{name} did not travel alone",
                f"{NUMBERS[friends]} friends went along with {name}",
                f"{name} has been to {end}",
            ),
            (
                f"{name} was in {end} for the first time",
                f"{name} and the friends quarrelled on the way",
                f"{name} had planned the journey for years",
            ),
            (
                f"{name} travelled alone",
                f"{name} made the journey {wrong}",
                f"{name} made the journey in the {not_season}",
                f"{name} has never left {start}",
                f"the journey took {name} to {other} instead of {end}",
            ),
        ),
        Fact(
            f"{they} returned home after {NUMBERS[days]} days",
            (
                f"{name} was away for more than a week",
                f"{name} came back home",
                f"{name} was back within three weeks",
            ),
            (
                f"{name} was happy to sleep in {their} own bed",
                f"{name} lost some weight while {they} was away",
            ),
            (
                f"{name} never came home",
                f"{name} was back after a single day",
                f"{name} was away for a whole year",
            ),
        ),
        Fact(
            f"{they} wrote a postcard to {their} mother every evening",
            (
                f"{name} wrote to {their} mother often",
                f"{their} mother was not forgotten",
                f"{name} wrote more than one postcard",
            ),
            (f"{their} mother kept all the postcards", "some of the postcards got lost in the post"),
            (f"{name} did not write a single postcard", f"{name} wrote to {their} mother only once"),
        ),
    ]


def comparison(rng: random.Random) -> list[Fact]:
    """Three people in order of height, age or speed."""
    (a, *_), (b, *_), (c, *_) = rng.sample(NAMES, 3)
    more, less, same, wish = rng.choice(
        (
            ("taller", "shorter", "are equally tall", "plays basketball"),
            ("older", "younger", "were born on the same day", "has grey hair"),
            ("faster", "slower", "always run equally fast", "trains every day"),
            ("richer", "poorer", "have the same amount of money", "inherited a house"),
            ("stronger", "weaker", "are equally strong", "works on a farm"),
        ),
    )
    years = rng.randint(2, 9)
    return [
        Fact(
            f"{a} is {more} than {b}, and {b} is {more} than {c}",
            (
                f"{a} is {more} than {c}",
                f"{c} is {less} than {a}",
                f"{c} is not {more} than {b}",
                f"{b} is {less} than {a}",
            ),
            (
                f"{a} {wish}",
                f"{c} is jealous of {a}",
                f"{a} and {b} are cousins",
                f"{b} would like to be {more}",
            ),
            (
                f"{c} is {more} than {a}",
                f"{a} is {less} than {b}",
                f"{a} and {c} {same}",
                f"{b} is {less} than {c}",
            ),
        ),
        Fact(
            f"they have lived in the same house for {NUMBERS[years]} years",
            (
                "they share a house",
                "they live under one roof",
                "they have been living together for more than a year",
            ),
            ("their house has a large garden", "they share a house because it is cheap"),
            ("they live in different houses", "they moved in together last week"),
        ),
    ]


def match(rng: random.Random) -> list[Fact]:
    """The result of a match."""
    home, away = rng.sample(CITIES, 2)
    game, unit = rng.choice(
        (("football", "goals"), ("handball", "goals"), ("hockey", "goals"), ("water polo", "goals"))
    )
    low = rng.randint(2, 7)
    high = low + rng.randint(1, 6)
    thousands, minutes = rng.randint(3, 60), rng.randint(3, 19)
    day, wrong = rng.sample((*WEEKDAYS, "Saturday", "Sunday"), 2)
    return [
        Fact(
            f"on {day}, {home} beat {away} at {game} by {NUMBERS[high]} {unit} to {NUMBERS[low]}",
            (
                f"{away} lost the match",
                f"{home} scored more {unit} than {away}",
                f"{home} won the match against {away}",
                f"there was a {game} match on {day}",
            ),
            (
                f"{home} will win the championship",
                f"{away} played without its best player",
                f"{home} and {away} are old rivals",
                "the referee made some mistakes",
            ),
            (
                f"{away} won the match",
                "the match ended in a draw",
                f"{away} did not score at all",
                f"{home} was beaten by {away}",
                f"the match was played on {wrong}",
            ),
        ),
        Fact(
            f"the match was watched by {thousands},000 people in the stadium",
            ("the match had more than two thousand spectators", "the stadium was not empty"),
            ("the stadium was sold out", "most of the people in the stadium were men"),
            (
                "there was nobody in the stadium",
                f"{thousands + 4},000 people came to the stadium",
                "fewer than a hundred people saw the match",
            ),
        ),
        Fact(
            f"the captain of the winning team left the field after {NUMBERS[minutes]} minutes with a knee injury",
            (
                "the captain of the winning team was injured",
                "the captain did not play until the end",
                "someone hurt a knee",
            ),
            ("the captain will miss the next match", "the captain was hurt by another player"),
            (
                "the captain played until the end",
                "nobody was injured",
                "the captain hurt a finger, not a knee",
            ),
        ),
    ]


def household(rng: random.Random) -> list[Fact]:
    """A family, its home, its animals."""
    name, they, their = rng.choice(NAMES)
    sons, daughters = rng.sample(range(2, 6), 2)
    city, other = rng.sample(CITIES, 2)
    rooms = rng.randint(3, 8)
    pet, wrong = rng.sample(("cat", "dog", "parrot", "rabbit", "tortoise"), 2)
    more, fewer = ("sons", "daughters") if sons > daughters else ("daughters", "sons")
    return [
        Fact(
            f"{name} has {NUMBERS[sons]} sons and {NUMBERS[daughters]} daughters",
            (
                f"{name} has {NUMBERS[sons + daughters]} children",
                f"{name} has more {more} than {fewer}",
                f"{name} has both sons and daughters",
                f"{name} is a parent",
            ),
            (
                f"{name} would like to have another child",
                f"the eldest child of {name} is at university",
                f"all the children look like {name}",
                f"{their} youngest child is a good singer",
            ),
            (
                f"{name} has no children",
                f"{name} has only one child",
                f"{name} has more {fewer} than {more}",
                f"{name} has sons but no daughters",
                f"{name} has {NUMBERS[sons + daughters + 2]} children",
            ),
        ),
        Fact(
            f"the family lives in {city} in a flat with {NUMBERS[rooms]} rooms",
            (
                f"the home of the family is in {city}",
                "the family lives in a flat",
                "the flat has more than two rooms",
            ),
            ("the flat is on the top floor", "the rent for the flat is high", "the flat belongs to an aunt"),
            (f"the family lives in {other}", "the family lives on a farm", "the flat has just one room"),
        ),
        Fact(
            f"{they} feeds the {pet} before breakfast",
            (
                f"the {pet} is fed in the morning",
                f"there is a {pet} in the house",
                f"{name} gives food to the {pet}",
            ),
            (f"the {pet} was a present", f"the {pet} sleeps in the kitchen", f"the {pet} is getting fat"),
            (f"the {pet} is never fed", "there are no animals in the house", f"the only pet is a {wrong}"),
        ),
    ]


def library_loan(rng: random.Random) -> list[Fact]:
    """Books borrowed and partly returned."""
    name, they, their = rng.choice(NAMES)
    books = rng.randint(4, 12)
    back = rng.randint(2, books - 2)
    subject, wrong = rng.sample(
        ("astronomy", "cooking", "gardening", "chess", "volcanoes", "ancient Egypt"), 2
    )
    first, second = sorted(rng.sample(range(5), 2))
    borrowed, returned = WEEKDAYS[first], WEEKDAYS[second]
    return [
        Fact(
            f"{name} borrowed {NUMBERS[books]} books about {subject} on {borrowed} and returned {NUMBERS[back]} "
            f"of them on {returned}",
            (
                f"{name} returned fewer books than {they} borrowed",
                f"{name} borrowed books about {subject}",
                f"{name} kept some of the books after {returned}",
                f"{name} returned only a part of the books",
            ),
            (
                f"{name} found the books hard to understand",
                f"{name} is writing an essay about {subject}",
                f"{name} has read every one of the books",
                f"{name} returned the books that {they} did not like",
            ),
            (
                f"{name} returned all of the books on {returned}",
                f"the books were about {wrong}, not {subject}",
                f"{name} did not borrow any books",
                f"{name} borrowed only one book",
                f"{name} returned none of the books",
            ),
        ),
        Fact(
            f"{their} library card is valid until December",
            (f"{name} has a library card", f"{name}'s library card has an end date"),
            (f"{name} will renew {their} library card", f"{name} has lost {their} library card before"),
            (f"{name} does not have a library card", f"{name}'s library card is valid for ever"),
        ),
    ]


def swimming_class(rng: random.Random) -> list[Fact]:
    """What the pupils of a class can do."""
    pupils = rng.randint(15, 32)
    few = rng.randint(2, 6)
    skill, harder, verb = rng.choice(
        (
            ("swim", "dive", "diving"),
            ("read", "read Latin", "Latin"),
            ("ride a bicycle", "repair a tyre", "repairs"),
            ("play the flute", "play the harp", "the harp"),
            ("count in English", "count in Chinese", "Chinese"),
        ),
    )
    teacher, (subject, wrong) = (
        rng.choice(NAMES),
        rng.sample(("history", "music", "geography", "biology", "art"), 2),
    )
    return [
        Fact(
            f"all {pupils} pupils in the class can {skill}, but only {NUMBERS[few]} of them can {harder}",
            (
                f"every pupil in the class can {skill}",
                f"most of the pupils cannot {harder}",
                f"more pupils can {skill} than can {harder}",
                f"some of the pupils can {harder}",
            ),
            (
                f"the pupils will have lessons in {verb} next year"
                if verb != "repairs"
                else "the pupils will have a course on repairs next year",
                f"the pupils are proud that they can {skill}",
                f"the pupils who can {harder} are the oldest ones",
            ),
            (
                f"none of the pupils can {harder}",
                f"some of the pupils cannot {skill}",
                f"every pupil in the class can {harder}",
                f"nobody in the class can {skill}",
            ),
        ),
        Fact(
            f"their {subject} teacher is called {teacher[0]}",
            (f"{teacher[0]} teaches {subject}", f"{teacher[0]} is a teacher", f"the pupils learn {subject}"),
            (f"{teacher[0]} is the most popular teacher at the school", f"{teacher[0]} has two degrees"),
            (
                f"{teacher[0]} is one of the pupils",
                "the pupils do not have any teachers",
                f"the {subject} teacher has no name",
            ),
        ),
    ]


def weather_report(rng: random.Random) -> list[Fact]:
    """Temperatures on two days."""
    city, other = rng.sample(CITIES, 2)
    first, second = rng.randint(12, 30), rng.randint(12, 30)
    while abs(first - second) < 3:
        second = rng.randint(12, 30)
    warm, cold = ("Saturday", "Sunday") if first > second else ("Sunday", "Saturday")
    return [
        Fact(
            f"in {city}, it was {first} degrees on Saturday and {second} degrees on Sunday",
            (
                f"{warm} was warmer than {cold} in {city}",
                f"{cold} was the cooler of the two days",
                "the temperature was not the same on both days",
                "it was above ten degrees on both days",
            ),
            (
                f"it was warmer in {other} than in {city}",
                f"the people of {city} spent {warm} outdoors",
                "the forecast had been wrong",
                f"the swimming pools in {city} were full on {warm}",
            ),
            (
                f"{cold} was warmer than {warm}",
                "it was equally warm on both days",
                "it was freezing on both days",
                f"the temperature on {cold} was higher than on {warm}",
            ),
        ),
        Fact(
            "there was a storm on Monday, and two roads were closed because of fallen trees",
            ("the weather was bad on Monday", "some trees fell down", "more than one road was closed"),
            (
                "the roads were open again by Tuesday",
                "the storm came from the sea",
                "a car was hit by a tree",
            ),
            ("the weather was calm on Monday", "no trees fell down", "all the roads stayed open"),
        ),
    ]


def market_prices(rng: random.Random) -> list[Fact]:
    """What things cost at a market stall."""
    (dear, _), (cheap, _) = goods = rng.sample(
        (
            ("a jar of honey", 0),
            ("a basket of strawberries", 0),
            ("a loaf of bread", 0),
            ("a bag of walnuts", 0),
            ("a bunch of tulips", 0),
            ("a piece of cheese", 0),
            ("a bottle of oil", 0),
        ),
        2,
    )
    low = rng.randint(2, 8)
    high = low + rng.randint(1, 9)
    the_dear, the_cheap = (f"the {thing.split()[1]} of {thing.split()[3]}" for thing, _ in goods)
    return [
        Fact(
            f"at the market, {dear} costs {NUMBERS[high]} euros and {cheap} costs {NUMBERS[low]}",
            (
                f"{cheap} is cheaper than {dear}",
                f"{dear} costs more than {cheap}",
                f"five euros are not enough for {dear}" if high > 5 else f"{dear} costs less than six euros",
                f"{the_dear} and {the_cheap} together cost {high + low} euros",
            ),
            (
                f"{dear} was cheaper a year ago",
                f"few people buy {dear}",
                f"{the_cheap} is from a local farm",
                "the supermarket is cheaper than the market",
            ),
            (
                f"{cheap} costs more than {dear}",
                f"{dear} and {cheap} have the same price",
                f"{dear} is the cheaper of the two",
                f"{cheap} costs {NUMBERS[high + 1]} euros",
            ),
        ),
        Fact(
            "the market is held every Thursday in front of the church",
            (
                "there is a market once a week",
                "the market is not inside the church",
                "people can go to the market on Thursdays",
            ),
            ("the market has been held there for centuries", "the church bells ring when the market opens"),
            (
                "the market is held once a year",
                "the market is held on Mondays only",
                "the market takes place inside the church",
            ),
        ),
    ]


def meeting(rng: random.Random) -> list[Fact]:
    """A meeting, its length, its outcome."""
    who = rng.choice(("the city council", "the school board", "the committee", "the football club"))
    start = rng.randint(1, 7)
    hours, votes = rng.randint(2, 4), rng.randint(9, 15)
    against = rng.randint(2, 7)
    what, where = rng.choice(
        (
            ("a new bridge", "over the river"),
            ("a playground", "behind the school"),
            ("a car park", "near the station"),
            ("a swimming pool", "in the old factory"),
            ("a garden", "on the roof"),
        ),
    )
    return [
        Fact(
            f"{who} met at {NUMBERS[start]} in the afternoon and talked for {NUMBERS[hours]} hours",
            (
                "the meeting lasted longer than an hour",
                f"{who} had a meeting after midday",
                f"{who} did not meet in the morning",
            ),
            (
                f"{who} meets every month",
                "some members fell asleep during the meeting",
                "the meeting was held in English",
            ),
            (
                "the meeting was over after ten minutes",
                "the meeting took place before breakfast",
                f"{who} cancelled the meeting",
            ),
        ),
        Fact(
            f"{NUMBERS[votes]} members voted for {what} {where}, and {NUMBERS[against]} voted against it",
            (
                f"most of the votes were in favour of {what}",
                f"not everyone wanted {what}",
                "more members voted for the plan than against it",
            ),
            (
                f"{what} will cost a lot of money",
                f"the mayor had asked for {what}",
                "the members who voted against it were angry",
            ),
            (
                f"nobody voted for {what}",
                f"everyone was in favour of {what}",
                "more members voted against the plan than for it",
            ),
        ),
    ]


def note(rng: random.Random) -> list[Fact]:
    """A single short statement."""
    city, (name, they, their) = rng.choice(CITIES), rng.choice(NAMES)
    weather, wet, dry = rng.choice((("raining", "rain", "sunny and dry"), ("snowing", "snow", "hot and dry")))
    skill, expert = rng.choice(
        (
            ("cook", "has been a cook for twenty years"),
            ("drive", "is an experienced taxi driver"),
            ("swim", "is an Olympic swimmer"),
            ("dance", "is a famous dance teacher"),
            ("sail", "has sailed around the world twice"),
        ),
    )
    room, wrong = rng.sample(("kitchen", "cellar", "garage", "bathroom", "attic"), 2)
    return [
        rng.choice(
            (
                Fact(
                    f"it was {weather} in {city}",
                    (f"there was {wet} in {city}", f"the weather in {city} was not dry"),
                    (f"it had been {weather} in {city} for days", f"the airport in {city} was closed"),
                    (f"it was {dry} in {city}", f"there was no {wet} in {city}"),
                ),
                Fact(
                    f"{name} is learning to {skill}",
                    (f"{name} is learning something", f"{name} is a beginner"),
                    (f"{name} is learning to {skill} for {their} job", f"{name} has a patient teacher"),
                    (f"{name} {expert}", f"{name} refuses to learn to {skill}"),
                ),
                Fact(
                    f"{name} is painting the {room}",
                    ("someone is painting a room", f"{name} is not idle"),
                    (f"{name} is painting the {room} white", f"{name} will sell the house"),
                    (f"{name} is asleep", f"{name} is painting the {wrong} instead of the {room}"),
                ),
            )
        ),
    ]


REPORTS: tuple[Report, ...] = (
    timetable,
    factory,
    museum,
    voyage,
    comparison,
    match,
    household,
    library_loan,
    swimming_class,
    weather_report,
    market_prices,
    meeting,
    note,
)
