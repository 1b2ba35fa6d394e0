"""Names, numbers and things that the corpus's reports draw from."""

# fmt: off
NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)
CITIES = (
    "Lisbon", "Porto", "Turin", "Naples", "Lyon", "Ghent", "Bergen", "Gdansk", "Zagreb", "Krakow", "Utrecht",
    "Seville", "Graz", "Basel", "Tartu", "Odense",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
NAMES = (  # and the pronouns that go with them
    *((name, "she", "her") for name in ("Anna", "Maria", "Ruth", "Leila", "Clara", "Ingrid", "Yuki")),
    *((name, "he", "his") for name in ("Tomas", "Omar", "Peter", "Samuel", "Diego", "Henrik", "Rafael")),
)
PRODUCTS = (
    ("shoes", "things to wear"), ("coats", "clothes"), ("tables", "furniture"), ("pianos", "musical instruments"),
    ("bicycles", "vehicles"), ("biscuits", "food"), ("clocks", "things that tell the time"),
)
COMPARISONS = (
    ("taller", "shorter", "are equally tall", "plays basketball"),
    ("older", "younger", "were born on the same day", "has grey hair"),
    ("faster", "slower", "always run equally fast", "trains every day"),
    ("richer", "poorer", "have the same amount of money", "inherited a house"),
    ("stronger", "weaker", "are equally strong", "works on a farm"),
)
SKILLS = (
    ("swim", "dive"), ("read English", "read Latin"), ("ride a bicycle", "repair a tyre"),
    ("play the flute", "play the harp"), ("count in English", "count in Chinese"),
)
EXPERTS = (
    ("cook", "has been a cook for twenty years"), ("drive", "is an experienced taxi driver"),
    ("swim", "is an Olympic swimmer"), ("dance", "is a famous dance teacher"),
    ("sail", "has sailed around the world twice"),
)
GOODS = (
    ("a jar of honey", "the honey"), ("a basket of strawberries", "the basket of strawberries"),
    ("a loaf of bread", "the bread"), ("a bag of walnuts", "the bag of walnuts"),
    ("a bunch of tulips", "the bunch of tulips"), ("a piece of cheese", "the cheese"),
    ("a bottle of oil", "the oil"),
)
PLANS = (
    ("a new bridge", "over the river"), ("a playground", "behind the school"), ("a car park", "near the station"),
    ("a swimming pool", "in the old factory"), ("a garden", "on the roof of the town hall"),
)
# fmt: on
