"""What happens in the corpus's scenes: who does what, where, and what else stands around.

Plain material for `bugs.lab.sentences.pairs`. In a template, `{is}`, `{are}`, `{has}`, `{have}` and `{will}` follow the
scene's tense; `{colour}` and `{number}` are stated in the premise, `{other}` and `{wrong}` differ from them.
Every phrase was chosen so that a person can decide the label from the text:

- `again`, `broadly`, `entailed`: true whenever the premise is;
- `details`, `neutral`: may be so, but nothing in any scene says or denies it;
- `instead`, `contradicted`: cannot be so at the same time.
"""

from dataclasses import dataclass

COLOURS = ("red", "blue", "green", "yellow", "white", "black", "brown", "purple")

FURS = ("black", "white", "brown", "grey")

# adjective of a person: what follows from it, what it rules out (both after "is" or "are")
TRAITS = {
    "young": ("not old", "over eighty years old"),
    "elderly": ("no longer young", "under twenty years old"),
    "tall": ("not short", "unusually short"),
    "cheerful": ("in a good mood", "in a terrible mood"),
    "tired": ("not fully rested", "wide awake and full of energy"),
    "barefoot": ("not wearing shoes", "wearing heavy boots"),
}

PLURALS = {
    "woman": "women",
    "man": "men",
    "fisherman": "fishermen",
    "boy": "boys",
}

GARMENTS = (
    ("coat", "coats"),
    ("scarf", "scarves"),
    ("hat", "hats"),
    ("jacket", "jackets"),
    ("apron", "aprons"),
)


@dataclass(frozen=True)
class Activity:
    """Something that people do with a thing: `{a}` introduces the thing, `{the}` refers back to it."""

    actors: tuple[str, ...]
    doing: str
    again: str
    things: tuple[tuple[str, str], ...]  # the thing, and a broader word for it
    places: tuple[tuple[str, str], ...]  # the place, and which side facts suit it
    broadly: str
    instead: tuple[str, ...]
    details: tuple[str, ...]
    most: int = 4  # how many people may be at it together


FURNITURE, VEHICLE = "a piece of furniture", "a vehicle"
GARAGE, WORKSHOP = ("in a garage", "workshop"), ("in a small workshop", "workshop")
KITCHEN, GARDEN, PARK = ("in a kitchen", "home"), ("in a garden", "country"), ("in a park", "town")
BEACH, HARBOUR, OFFICE = ("on a beach", "shore"), ("in a harbour", "shore"), ("in an office", "hall")
SQUARE, MEADOW, FARM = ("in a busy square", "town"), ("in a meadow", "country"), ("on a farm", "country")

ACTIVITIES = (
    Activity(
        ("woman", "man", "mechanic"),
        "repairing {a}",
        "fixing {the}",
        (("a bicycle", VEHICLE), ("a motorbike", VEHICLE), ("a lawnmower", "a machine")),
        (GARAGE, WORKSHOP),
        "trying to get something to work again",
        ("throwing {the} into a river", "having lunch in a restaurant"),
        ("for a neighbour", "before a long trip", "to save money"),
    ),
    Activity(
        ("carpenter", "woman", "man"),
        "building {a}",
        "making {the}",
        (("a table", FURNITURE), ("a wardrobe", FURNITURE), ("a wooden chair", FURNITURE)),
        (WORKSHOP, GARAGE),
        "making something new",
        ("burning {the} in a stove", "dancing at a wedding"),
        ("for a customer in the city", "for a school", "as a wedding present"),
    ),
    Activity(
        ("girl", "boy"),
        "flying {a}",
        "keeping {the} in the air",
        (("a kite", "a toy"), ("a model aeroplane", "a toy")),
        (BEACH, MEADOW, ("on a hill", "country")),
        "playing outside",
        ("reading comics in bed", "sitting in a classroom", "doing homework at a desk"),
        ("for the first time", "to celebrate a birthday", "while a parent takes pictures"),
    ),
    Activity(
        ("baker", "woman", "man", "girl"),
        "baking {a}",
        "making {the} in an oven",
        (("some bread", "some food"), ("an apple pie", "a dessert"), ("a chocolate cake", "a dessert")),
        (KITCHEN, ("in a bakery", "hall")),
        "preparing food",
        ("washing a car in the street", "buying {the} in a supermarket", "climbing a mountain"),
        ("for a wedding", "for the first time", "to surprise a friend"),
    ),
    Activity(
        ("nurse", "doctor"),
        "examining {a}",
        "taking a close look at {the}",
        (("a broken arm", "an injury"), ("a swollen ankle", "an injury"), ("a deep cut", "an injury")),
        (("in a hospital", "hall"), ("in a clinic", "hall")),
        "doing medical work",
        ("playing football in a park", "sleeping in a tent"),
        ("for the second time", "before the end of the shift", "after a traffic accident"),
        most=3,
    ),
    Activity(
        ("teacher",),
        "discussing {a} with a class",
        "talking about {the} with a class",
        (("a poem", "a text"), ("a short story", "a text"), ("a newspaper article", "a text")),
        (("in a classroom", "hall"), ("in a lecture hall", "hall")),
        "talking to students",
        ("swimming in the sea", "having a picnic in a forest"),
        ("to prepare for an exam", "in the first week of term", "instead of the planned lesson"),
        most=2,
    ),
    Activity(
        ("farmer", "woman", "man"),
        "loading {a} onto a trailer",
        "putting {the} onto a trailer",
        (
            ("some potatoes", "some vegetables"),
            ("some apples", "some fruit"),
            ("some pumpkins", "some vegetables"),
        ),
        (("in a field", "country"), ("beside a barn", "country")),
        "doing farm work",
        ("watching television on a sofa", "typing in an office"),
        ("for the market", "for a cousin", "with the help of a machine"),
    ),
    Activity(
        ("fisherman", "sailor"),
        "mending {a}",
        "repairing {the}",
        (("a torn net", "a net"), ("a wooden boat", "a boat"), ("a ragged sail", "a sail")),
        (HARBOUR, ("on a pier", "shore")),
        "working by the water",
        ("sleeping in a hotel room", "climbing a mountain"),
        ("for the next voyage", "with borrowed tools", "for an old friend"),
    ),
    Activity(
        ("tourist", "woman", "man"),
        "photographing {a}",
        "taking pictures of {the}",
        (
            ("a fountain", "something made by people"),
            ("a statue", "a work of art"),
            ("a cathedral", "a church"),
        ),
        (SQUARE, ("in a medieval town", "town")),
        "using a camera",
        ("swimming in a lake", "painting a kitchen wall"),
        ("for a travel magazine", "with a borrowed camera", "on the last day of a holiday"),
    ),
    Activity(
        ("musician", "student"),
        "playing {a}",
        "making music with {the}",
        tuple((thing, "a musical instrument") for thing in ("a violin", "a guitar", "a trumpet")),
        (("on a street corner", "town"), ("in a concert hall", "hall")),
        "making music",
        ("sleeping on a bus", "repairing a roof"),
        ("for the first time in public", "to earn some money", "in memory of a friend"),
        most=1,
    ),
    Activity(
        ("girl", "boy", "woman", "man"),
        "collecting {a}",
        "gathering {the}",
        (
            ("some shells", "some small objects"),
            ("some driftwood", "some wood"),
            ("some pebbles", "some stones"),
        ),
        (BEACH, ("along a sandy shore", "shore")),
        "spending time by the water",
        ("doing homework at a desk", "riding horses through a forest"),
        ("for a school project", "for a sick friend", "to decorate a garden"),
    ),
    Activity(
        ("gardener", "woman", "man"),
        "planting {a}",
        "putting {the} into the ground",
        (("some roses", "some flowers"), ("an apple tree", "a tree"), ("some tomatoes", "some vegetables")),
        (GARDEN, PARK),
        "working with plants",
        ("playing cards in a living room", "flying across the ocean"),
        ("for a relative", "in memory of a friend", "with a borrowed spade"),
    ),
    Activity(
        ("cook", "woman", "man"),
        "chopping {a}",
        "cutting {the} into pieces",
        (
            ("some onions", "some vegetables"),
            ("some carrots", "some vegetables"),
            ("some mushrooms", "some food"),
        ),
        (KITCHEN, ("in a restaurant kitchen", "home")),
        "preparing food",
        ("lying in the sun on a beach", "waiting at an airport"),
        ("for a soup", "for forty guests", "with a very sharp knife"),
    ),
    Activity(
        ("student", "woman", "man", "girl"),
        "reading {a}",
        "looking at the pages of {the}",
        (("a novel", "a book"), ("a history book", "a book"), ("a magazine", "something printed")),
        (("in a library", "hall"), ("in a quiet cafe", "hall"), ("on a park bench", "town")),
        "reading",
        ("shouting at a football match", "swimming in a cold lake"),
        ("for an exam", "for the third time", "to pass the time"),
        most=1,
    ),
    Activity(
        ("clerk", "secretary", "lawyer"),
        "writing {a}",
        "putting {the} into words",
        (("a letter", "a text"), ("a report", "a document"), ("a long message", "a text")),
        (OFFICE, ("in a town hall", "hall")),
        "working on a text",
        ("running a marathon", "sleeping at home in bed"),
        ("to a customer abroad", "about a delayed delivery", "with the help of a dictionary"),
        most=2,
    ),
    Activity(
        ("painter", "woman", "man"),
        "painting {a}",
        "putting paint on {the}",
        (("a wooden fence", "a fence"), ("a front door", "a door"), ("a garden gate", "a gate")),
        (("in front of a cottage", "country"), ("in a quiet street", "town")),
        "doing some painting",
        ("knocking down {the} with a hammer", "having a bath"),
        ("for a relative", "with very cheap paint", "for the second time"),
    ),
    Activity(
        ("girl", "boy"),
        "chasing {a}",
        "running after {the}",
        (("a butterfly", "an insect"), ("a puppy", "an animal"), ("a ball", "a toy")),
        (PARK, MEADOW, GARDEN),
        "running",
        ("sitting quietly on a bench", "sleeping in the shade"),
        ("during a family picnic", "after a long car journey", "while a parent makes tea"),
    ),
    Activity(
        ("cyclist", "woman", "man"),
        "pushing {a} up a steep road",
        "moving {the} uphill",
        (("a bicycle", VEHICLE), ("a heavy cart", "something with wheels"), ("a motorbike", VEHICLE)),
        (("in a mountain village", "country"), ("outside a small town", "country")),
        "going uphill",
        ("rolling downhill at full speed", "resting in a hammock"),
        ("because of a flat tyre", "to reach a market", "for a bet"),
        most=3,
    ),
    Activity(
        ("woman", "man", "student"),
        "carrying {a}",
        "moving {the} by hand",
        (("a sofa", FURNITURE), ("a mattress", "a heavy object"), ("a bookcase", FURNITURE)),
        (("up a staircase", "home"), ("down a narrow street", "town")),
        "moving something heavy",
        ("taking a nap on {the}", "waiting empty-handed at a bus stop"),
        ("for a friend", "to a new flat", "because a lift is broken"),
    ),
    Activity(
        ("waiter",),
        "serving {a} to a guest",
        "bringing {the} to a guest",
        (("some coffee", "a hot drink"), ("some soup", "some food"), ("a fruit salad", "some food")),
        (("on a terrace", "town"), ("in a small restaurant", "hall")),
        "looking after a guest",
        ("sleeping on a park bench", "playing tennis"),
        ("on the first day of a new job", "free of charge", "with a glass of water"),
        most=2,
    ),
    Activity(
        ("sailor", "fisherman"),
        "cleaning {a}",
        "washing {the}",
        (("a sailing boat", "a boat"), ("a fishing boat", "a boat"), ("a ferry", "a ship")),
        (HARBOUR, ("beside a pier", "shore")),
        "removing dirt",
        ("sinking {the}", "drinking tea in a cafe"),
        ("before a race", "for the owner", "with old rags"),
    ),
    Activity(
        ("girl", "boy", "student"),
        "drawing {a}",
        "making a picture of {the}",
        (("a horse", "an animal"), ("a castle", "a building"), ("a sailing ship", "a ship")),
        (("at a kitchen table", "home"), ("in an art room", "hall")),
        "making a picture",
        ("jumping into a swimming pool", "riding a pony"),
        ("as a present", "for a competition", "with borrowed pencils"),
        most=3,
    ),
    Activity(
        ("engineer", "mechanic"),
        "testing {a}",
        "checking whether {the} works",
        tuple((thing, "a machine") for thing in ("a new engine", "a small robot", "a water pump")),
        (("in a laboratory", "workshop"), WORKSHOP),
        "doing technical work",
        ("lying in the sun on a beach", "baking biscuits"),
        ("for a client in Norway", "for the last time", "before an exhibition"),
    ),
    Activity(
        ("shepherd", "farmer"),
        "leading {a} along a path",
        "guiding {the} along a path",
        (("some sheep", "some animals"), ("some goats", "some animals"), ("a donkey", "an animal")),
        (MEADOW, ("near a mountain village", "country")),
        "looking after {kind}",
        ("sitting at a desk", "standing still inside a barn"),
        ("to a summer pasture", "to a market", "to a drinking place"),
        most=3,
    ),
    Activity(
        ("courier",),
        "delivering {a}",
        "bringing {the} to somebody",
        (("a parcel", "a package"), ("a wedding cake", "a cake"), ("a wooden crate", "a container")),
        (("in a quiet street", "town"), ("outside an office building", "town")),
        "making a delivery",
        ("watching a film in a cinema", "having breakfast in bed"),
        ("two days late", "to a famous singer", "before a long weekend"),
        most=2,
    ),
    Activity(
        ("plumber",),
        "replacing {a}",
        "putting something new in the place of {the}",
        (("a leaking pipe", "a pipe"), ("a broken tap", "a tap"), ("a cracked sink", "a sink")),
        (KITCHEN, ("in a cellar", "home")),
        "doing a repair",
        ("picking flowers in a meadow", "driving across a desert"),
        ("for a young family", "at a very low price", "for the second time"),
        most=2,
    ),
    Activity(
        ("librarian", "student"),
        "sorting {a}",
        "putting {the} in order",
        (
            ("some old books", "some books"),
            ("some newspapers", "some papers"),
            ("some photographs", "some pictures"),
        ),
        (("in a library", "hall"), ("in an archive", "hall")),
        "tidying up",
        ("burning {the} in a field", "playing hockey"),
        ("for an exhibition", "by year", "as part of a research project"),
        most=3,
    ),
    Activity(
        ("tourist", "woman", "man"),
        "studying {a}",
        "looking closely at {the}",
        (("a street map", "a map"), ("a bus timetable", "a timetable"), ("a menu", "a list of dishes")),
        (SQUARE, ("outside a railway station", "town")),
        "reading something",
        ("driving a lorry on a motorway", "sleeping in a hotel room"),
        ("to settle an argument", "with the help of a stranger", "without understanding a word"),
    ),
    Activity(
        ("scientist", "woman", "man"),
        "watching {a} through binoculars",
        "observing {the}",
        (("some dolphins", "some animals"), ("a whale", "an animal"), ("an eagle", "a bird")),
        (("on a cliff", "shore"), ("on a quiet shore", "shore")),
        "observing wildlife",
        ("shopping in a supermarket", "dancing in a nightclub"),
        ("for a research project", "for the first time", "while a friend takes notes"),
    ),
    Activity(
        ("tailor", "woman"),
        "sewing {a}",
        "making {the} with needle and thread",
        tuple(
            (thing, "a piece of clothing") for thing in ("a wedding dress", "a winter coat", "a silk shirt")
        ),
        (WORKSHOP, ("in a living room", "home")),
        "making something to wear",
        ("skiing down a mountain", "swimming in a river"),
        ("for a famous singer", "from an old pattern", "as a favour"),
        most=2,
    ),
    Activity(
        ("woman", "man", "girl", "boy"),
        "feeding {a}",
        "giving food to {the}",
        (("some ducks", "some birds"), ("a pony", "an animal"), ("some hens", "some birds")),
        (FARM, ("beside a pond", "country")),
        "looking after {kind}",
        ("sitting in a cinema", "eating in a restaurant"),
        ("for a neighbour", "for the second time", "with bread from a bakery"),
        most=3,
    ),
)
