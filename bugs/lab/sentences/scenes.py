"""What people do in the corpus's scenes, and where.

Plain material for `bugs.lab.sentences.people`, chosen so that a person can decide every label from the text. In
an activity, `{a}` introduces the thing ("a bicycle"), `{the}` refers back to it, `{kind}` is a broader word.
"""

from dataclasses import dataclass

COLOURS = ("red", "blue", "green", "yellow", "white", "black", "brown", "purple")
FURS = ("black", "white", "brown", "grey")
GARMENTS = (
    ("coat", "coats"), ("scarf", "scarves"), ("hat", "hats"), ("jacket", "jackets"), ("apron", "aprons"),
)  # fmt: skip
PLURALS = {
    "woman": "women",
    "man": "men",
    "fisherman": "fishermen",
    "secretary": "secretaries",
}  # the others take an s

# adjective of a person: what follows from it, what it rules out (both after "is" or "are")
TRAITS = {
    "young": ("not old", "over eighty years old"),
    "elderly": ("no longer young", "under twenty years old"),
    "tall": ("not short", "unusually short"),
    "cheerful": ("in a good mood", "in a terrible mood"),
    "tired": ("not fully rested", "wide awake and full of energy"),
    "barefoot": ("not wearing shoes", "wearing heavy boots"),
}


@dataclass(frozen=True)
class Activity:
    """Something that people do with a thing."""

    actors: tuple[str, ...]
    doing: str
    again: str  # the same in other words
    broadly: str  # follows from it
    things: tuple[tuple[str, str], ...]  # a thing, and a broader word for it
    places: tuple[tuple[str, str], ...]  # a place, and the kind of surroundings that it has
    instead: tuple[str, ...]  # cannot be done at the same time
    details: tuple[str, ...]  # may be added, go together, and do not follow from anything else
    most: int = 4  # how many people may be at it together


GARAGE, WORKSHOP = ("in a garage", "workshop"), ("in a small workshop", "workshop")
KITCHEN, GARDEN, PARK = ("in a kitchen", "home"), ("in a garden", "country"), ("in a park", "town")
BEACH, HARBOUR, OFFICE = ("on a beach", "shore"), ("in a harbour", "shore"), ("in an office", "hall")
SQUARE, MEADOW, FARM = ("in a busy square", "town"), ("in a meadow", "country"), ("on a farm", "country")

# fmt: off
ACTIVITIES = (
    Activity(
        ("woman", "man", "mechanic"), "repairing {a}", "fixing {the}", "trying to make something work",
        (("a bicycle", "a vehicle"), ("a motorbike", "a vehicle"), ("a lawnmower", "a machine")),
        (GARAGE, WORKSHOP),
        ("throwing {the} into a river", "having lunch in a restaurant"),
        ("for a neighbour", "before a long trip", "to save money"),
    ),
    Activity(
        ("carpenter", "woman", "man"), "building {a}", "making {the}", "making something new",
        (("a table", "a piece of furniture"), ("a wardrobe", "a piece of furniture"),
         ("a wooden chair", "a piece of furniture")),
        (WORKSHOP, GARAGE),
        ("burning {the} in a stove", "dancing at a wedding"),
        ("for a customer in the city", "from old oak", "with a new saw"),
    ),
    Activity(
        ("girl", "boy"), "flying {a}", "keeping {the} in the air", "playing outside",
        (("a kite", "a toy"), ("a model aeroplane", "a toy")),
        (BEACH, MEADOW, ("on a hill", "country")),
        ("reading comics in bed", "sitting in a classroom", "doing homework at a desk"),
        ("for the first time", "to celebrate a birthday", "with the help of a parent"),
    ),
    Activity(
        ("baker", "woman", "man", "girl"), "baking {a}", "making {the} in an oven", "preparing food",
        (("some bread", "some food"), ("an apple pie", "a dessert"), ("a chocolate cake", "a dessert")),
        (KITCHEN, ("in a bakery", "hall")),
        ("washing a car in the street", "buying {the} in a supermarket", "climbing a mountain"),
        ("for a wedding", "for the first time", "with fresh butter"),
    ),
    Activity(
        ("nurse", "doctor"), "examining {a}", "taking a close look at {the}", "doing medical work",
        (("a broken arm", "an injury"), ("a swollen ankle", "an injury"), ("a deep cut", "an injury")),
        (("in a hospital", "hall"), ("in a clinic", "hall")),
        ("playing football in a park", "sleeping in a tent"),
        ("for the second time", "before the end of the shift", "after a traffic accident"),
        most=3,
    ),
    Activity(
        ("teacher",), "discussing {a} with a class", "talking about {the} with a class", "giving a lesson",
        (("a poem", "a text"), ("a short story", "a text"), ("a newspaper article", "a text")),
        (("in a classroom", "hall"), ("in a lecture hall", "hall")),
        ("swimming in the sea", "having a picnic in a forest"),
        ("to prepare for an exam", "in the first week of term", "instead of the planned lesson"),
        most=2,
    ),
    Activity(
        ("farmer", "woman", "man"), "loading {a} onto a trailer", "moving {the} onto a trailer", "doing a job",
        (("some potatoes", "some vegetables"), ("some apples", "some fruit"),
         ("some pumpkins", "some vegetables")),
        (("in a field", "country"), ("beside a barn", "country")),
        ("watching television on a sofa", "typing in an office"),
        ("for the market", "without a break", "with the help of a machine"),
    ),
    Activity(
        ("fisherman", "sailor"), "mending {a}", "repairing {the}", "working by the water",
        (("a torn net", "a net"), ("a wooden boat", "a boat"), ("a ragged sail", "a sail")),
        (HARBOUR, ("on a pier", "shore")),
        ("sleeping in a hotel room", "climbing a mountain"),
        ("for the next voyage", "with borrowed tools", "for the third time"),
    ),
    Activity(
        ("tourist", "woman", "man"), "photographing {a}", "taking pictures of {the}", "using a camera",
        (("a fountain", "something made by people"), ("a statue", "a work of art"),
         ("a cathedral", "a church")),
        (SQUARE, ("in a medieval town", "town")),
        ("swimming in a lake", "painting a kitchen wall"),
        ("for a travel magazine", "with a borrowed camera", "on the last day of a holiday"),
    ),
    Activity(
        ("musician", "student"), "playing {a}", "making music with {the}", "making music",
        (("a violin", "a musical instrument"), ("a guitar", "a musical instrument"),
         ("a trumpet", "a musical instrument")),
        (("on a street corner", "town"), ("in a concert hall", "hall")),
        ("sleeping on a bus", "repairing a roof"),
        ("for the first time in public", "to earn some money", "in memory of a friend"),
        most=1,
    ),
    Activity(
        ("girl", "boy", "woman", "man"), "collecting {a}", "gathering {the}", "spending time by the water",
        (("some shells", "some small objects"), ("some driftwood", "some wood"),
         ("some pebbles", "some stones")),
        (BEACH, ("along a sandy shore", "shore")),
        ("doing homework at a desk", "riding horses through a forest"),
        ("for a school project", "with great patience", "on the advice of a doctor"),
    ),
    Activity(
        ("gardener", "woman", "man"), "planting {a}", "putting {the} into the ground", "working with plants",
        (("some roses", "some flowers"), ("an apple tree", "a tree"), ("some tomatoes", "some vegetables")),
        (GARDEN, PARK),
        ("playing cards in a living room", "flying across the ocean"),
        ("for a relative", "with great care", "with a borrowed spade"),
    ),
    Activity(
        ("cook", "woman", "man"), "chopping {a}", "cutting {the} into pieces", "preparing food",
        (("some onions", "some vegetables"), ("some carrots", "some vegetables"),
         ("some mushrooms", "some food")),
        (KITCHEN, ("in a restaurant kitchen", "home")),
        ("lying in the sun on a beach", "waiting at an airport"),
        ("for a soup", "for forty guests", "with a very sharp knife"),
    ),
    Activity(
        ("student", "woman", "man", "girl"), "reading {a}", "looking at the pages of {the}", "reading",
        (("a novel", "a book"), ("a history book", "a book"), ("a magazine", "something printed")),
        (("in a library", "hall"), ("in a quiet cafe", "hall"), ("on a park bench", "town")),
        ("shouting at a football match", "swimming in a cold lake"),
        ("for an exam", "for the third time", "without glasses"),
        most=1,
    ),
    Activity(
        ("clerk", "secretary", "lawyer"), "writing {a}", "putting {the} into words", "working on a text",
        (("a letter", "a text"), ("a report", "a document"), ("a long message", "a text")),
        (OFFICE, ("in a town hall", "hall")),
        ("running a marathon", "sleeping at home in bed"),
        ("for a customer abroad", "about a delayed delivery", "with the help of a dictionary"),
        most=2,
    ),
    Activity(
        ("painter", "woman", "man"), "painting {a}", "putting paint on {the}", "doing some painting",
        (("a wooden fence", "a fence"), ("a front door", "a door"), ("a garden gate", "a gate")),
        (("in front of a cottage", "country"), ("in a quiet street", "town")),
        ("knocking down {the} with a hammer", "having a bath"),
        ("for a relative", "with very cheap paint", "for the second time"),
    ),
    Activity(
        ("girl", "boy"), "chasing {a}", "running after {the}", "running",
        (("a butterfly", "an insect"), ("a puppy", "an animal"), ("a ball", "a toy")),
        (PARK, MEADOW, GARDEN),
        ("sitting quietly on a bench", "sleeping in the shade"),
        ("during a family picnic", "after a long car journey", "with a group of cousins"),
    ),
    Activity(
        ("cyclist", "woman", "man"), "pushing {a} up a steep road", "moving {the} uphill", "going uphill",
        (("a bicycle", "a vehicle"), ("a heavy cart", "something with wheels"),
         ("a motorbike", "a vehicle")),
        (("in a mountain village", "country"), ("outside a small town", "country")),
        ("rolling downhill at full speed", "resting in a hammock"),
        ("because of a flat tyre", "to reach a market", "without a break"),
        most=3,
    ),
    Activity(
        ("woman", "man", "student"), "carrying {a}", "moving {the} by hand", "moving something heavy",
        (("a sofa", "a piece of furniture"), ("a mattress", "a heavy object"),
         ("a bookcase", "a piece of furniture")),
        (("up a staircase", "home"), ("down a narrow street", "town")),
        ("taking a nap on {the}", "waiting empty-handed at a bus stop"),
        ("for a friend", "to a new flat", "without gloves"),
    ),
    Activity(
        ("waiter",), "serving {a} to a guest", "bringing {the} to a guest", "looking after a guest",
        (("some coffee", "a hot drink"), ("some soup", "some food"), ("a fruit salad", "some food")),
        (("on a terrace", "town"), ("in a small restaurant", "hall")),
        ("sleeping on a park bench", "playing tennis"),
        ("on the first day of a new job", "free of charge", "with a glass of water"),
        most=2,
    ),
    Activity(
        ("sailor", "fisherman"), "cleaning {a}", "washing {the}", "removing dirt",
        (("a sailing boat", "a boat"), ("a fishing boat", "a boat"), ("a ferry", "a ship")),
        (HARBOUR, ("beside a pier", "shore")),
        ("sinking {the}", "drinking tea in a cafe"),
        ("before a race", "for the owner", "with old rags"),
    ),
    Activity(
        ("girl", "boy", "student"), "drawing {a}", "making a picture of {the}", "making a picture",
        (("a horse", "an animal"), ("a castle", "a building"), ("a sailing ship", "a ship")),
        (("at a kitchen table", "home"), ("in an art room", "hall")),
        ("jumping into a swimming pool", "riding a pony"),
        ("as a present", "with great care", "with borrowed pencils"),
        most=3,
    ),
    Activity(
        ("engineer", "mechanic"), "testing {a}", "checking whether {the} works", "doing technical work",
        (("a new engine", "a machine"), ("a small robot", "a machine"), ("a water pump", "a machine")),
        (("in a laboratory", "workshop"), WORKSHOP),
        ("lying in the sun on a beach", "baking biscuits"),
        ("for a client in Norway", "for the last time", "before an exhibition"),
    ),
    Activity(
        ("shepherd", "farmer"), "leading {a} along a path", "guiding {the} somewhere", "looking after {kind}",
        (("some sheep", "some animals"), ("some goats", "some animals"), ("a donkey", "an animal")),
        (MEADOW, ("near a mountain village", "country")),
        ("sitting at a desk", "standing still inside a barn"),
        ("to a summer pasture", "with the help of a dog", "for the first time"),
        most=3,
    ),
    Activity(
        ("courier",), "delivering {a}", "bringing {the} to somebody", "making a delivery",
        (("a parcel", "a package"), ("a wedding cake", "a cake"), ("a wooden crate", "a container")),
        (("in a quiet street", "town"), ("outside an office building", "town")),
        ("watching a film in a cinema", "having breakfast in bed"),
        ("for an elderly couple", "before a long weekend", "on a very old bicycle"),
        most=2,
    ),
    Activity(
        ("plumber",), "replacing {a}", "putting something new in the place of {the}", "doing a repair",
        (("a leaking pipe", "a pipe"), ("a broken tap", "a tap"), ("a cracked sink", "a sink")),
        (KITCHEN, ("in a cellar", "home")),
        ("picking flowers in a meadow", "driving across a desert"),
        ("for a young family", "at a very low price", "for the second time"),
        most=2,
    ),
    Activity(
        ("librarian", "student"), "sorting {a}", "putting {the} in order", "tidying up",
        (("some old books", "some books"), ("some newspapers", "some papers"),
         ("some photographs", "some pictures")),
        (("in a library", "hall"), ("in an archive", "hall")),
        ("burning {the} in a field", "playing hockey"),
        ("for an exhibition", "by year", "with white gloves"),
        most=3,
    ),
    Activity(
        ("tourist", "woman", "man"), "studying {a}", "looking closely at {the}", "reading something",
        (("a street map", "a map"), ("a bus timetable", "a timetable"), ("a menu", "a list of dishes")),
        (SQUARE, ("outside a railway station", "town")),
        ("driving a lorry on a motorway", "sleeping in a hotel room"),
        ("to settle an argument", "with the help of a stranger", "without understanding a word"),
    ),
    Activity(
        ("scientist", "woman", "man"), "watching {a} from afar", "observing {the}", "looking at {kind}",
        (("some dolphins", "some animals"), ("a whale", "an animal"), ("an eagle", "a bird")),
        (("on a cliff", "shore"), ("on a quiet shore", "shore")),
        ("shopping in a supermarket", "dancing in a nightclub"),
        ("for a research project", "for the first time", "on the advice of a friend"),
    ),
    Activity(
        ("tailor", "woman"), "sewing {a}", "making {the} with needle and thread", "making something to wear",
        (("a wedding dress", "a piece of clothing"), ("a winter coat", "a piece of clothing"),
         ("a silk shirt", "a piece of clothing")),
        (WORKSHOP, ("in a living room", "home")),
        ("skiing down a mountain", "swimming in a river"),
        ("for a famous singer", "from an old pattern", "as a favour"),
        most=2,
    ),
    Activity(
        ("woman", "man", "girl", "boy"), "feeding {a}", "giving food to {the}", "looking after {kind}",
        (("some ducks", "some birds"), ("a pony", "an animal"), ("some hens", "some birds")),
        (FARM, ("beside a pond", "country")),
        ("sitting in a cinema", "eating in a restaurant"),
        ("for a neighbour", "for the second time", "with bread from a bakery"),
        most=3,
    ),
)
# fmt: on
