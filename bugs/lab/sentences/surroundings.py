"""What else may be seen in a scene: animals, objects, onlookers, counts, weather and time.

In brackets stand the topic, of which a premise holds at most one statement, and the surroundings that it suits.
Verbs in braces follow the scene's tense; `{colour}`, `{fur}` and `{number}` are drawn, `{other}` and `{otherfur}`
differ from them. Every statement stands on its own and says nothing of what another one speaks of.
"""

from bugs.lab.sentences.facts import Fact, facts

WRITTEN = """
[animal: town country]
a {fur} dog {is} sleeping under a bench
+ an animal {is} asleep / the dog {is} resting / there {is} a dog under the bench
? the dog {has} just eaten / the dog {is} waiting for its owner / the dog {is} nine years old
- the dog {is} chasing a ball / the dog {is} {otherfur} / there {are} no animals here

[animal: shore]
{number} seagulls {are} circling above the water
+ some birds {are} in the air / there {is} more than one seagull / the seagulls {are} flying
? the seagulls {are} looking for fish / the seagulls {have} a nest nearby
- the seagulls {are} asleep on a roof / the sky {is} empty of birds / only one seagull {is} flying

[animal: country]
{number} horses {are} grazing behind a fence
+ some animals {are} eating grass / the horses {are} feeding / there {are} horses behind the fence
? the horses {are} for sale / the horses {are} used to children / one of the horses {is} lame
- the horses {are} locked in a stable / the horses {are} galloping along a road
- only one horse {is} behind the fence

[animal: home]
a {fur} cat {is} lying on the windowsill
+ there {is} a cat by the window / an animal {is} lying down / the cat {is} not on the floor
? the cat {is} listening to the birds outside / the cat {is} older than it looks / the cat {is} hungry
- the cat {is} hiding under a cupboard / the cat {is} {otherfur} / the cat {is} running around

[animal: workshop home]
a small dog {is} barking at the door
+ a dog {is} making noise / the dog {is} not quiet / an animal {is} at the door
? the dog {has} heard a stranger / the dog {is} afraid of the dark / the dog {will} bark all day
- the dog {is} asleep / the dog {is} completely silent / the only animal here {is} a cat

[animal: town]
{number} pigeons {are} sitting on the roof of a bus shelter
+ some birds {are} on a roof / the pigeons {are} not flying / there {are} several birds on the shelter
? the pigeons {are} waiting for crumbs / the pigeons {are} sick
- the pigeons {are} flying away / there {are} no birds on the shelter
- the pigeons {are} walking on the pavement

[object: town country]
a {colour} van {is} parked at the side of the road
+ there {is} a vehicle at the roadside / a van {is} standing still / the parked van {is} {colour}
? the van {has} a flat tyre / the van {is} full of tools / the van {is} for hire
- the van {is} racing down the road / the van {is} {other} / no vehicle {is} in sight

[object: town]
a {colour} poster on a wall {is} advertising a circus
+ there {is} a poster on a wall / the poster {is} about a circus / the poster {is} {colour}
? the circus {is} sold out / the circus {has} two elephants / the poster {is} a year old
- the poster {is} advertising a museum / the poster {is} {other} / there {is} nothing on the wall

[object: country]
a ladder {is} leaning against a {colour} shed
+ there {is} a ladder at the shed / the shed {is} {colour} / the ladder {is} not lying on the ground
? the ladder {is} missing a step / the shed {is} full of tools / somebody {will} climb the ladder soon
- the ladder {is} lying on the ground / the shed {is} {other} / there {is} no ladder near the shed

[object: shore]
a {colour} flag {is} flying at the top of a mast
+ there {is} a flag on a mast / the flag {is} {colour} / the mast {is} not bare
? the flag {is} a warning to swimmers / the flag {is} brand new / the mast {will} be painted soon
- the flag {is} lying on the ground / the flag {is} {other} / the mast {is} bare

[object: shore]
a {colour} rowing boat {is} lying upside down on the sand
+ there {is} a boat on the sand / the rowing boat {is} out of the water / the rowing boat {is} {colour}
? the rowing boat {has} a leak / somebody {will} come for the rowing boat later
? the rowing boat {is} older than the harbour master
- the rowing boat {is} far out at sea / the rowing boat {is} {other} / there {is} no boat on the sand

[object: home hall]
a {colour} vase with {number} roses {is} standing on a shelf
+ there {are} flowers on a shelf / a vase {is} on the shelf / the vase {is} {colour}
? the roses {are} from an admirer / the vase {is} very valuable / the roses {are} two days old
- the vase {is} empty / the vase {is} {other} / the vase {is} lying in pieces on the floor

[object: workshop]
an old radio on the shelf {is} playing a waltz
+ there {is} music in the room / the radio {is} on / a radio {is} standing on the shelf
? the radio {is} a present from a grandfather / somebody {will} turn the radio off soon
- the radio {is} silent / there {is} no music in the room / the radio {is} playing the news

[object: workshop]
{number} {colour} buckets {are} stacked in a corner
+ there {are} buckets in a corner / the buckets {are} {colour} / the corner {is} not empty
? the buckets {are} made in Italy / one of the buckets {has} a hole
- the buckets {are} hanging from the ceiling / all the buckets {are} {other}
- there {is} nothing in the corner

[object: home hall workshop]
the lamp above the door {is} broken
+ one of the lamps {does} not work / something above the door {is} out of order
? the lamp {will} be replaced soon / the lamp {is} older than the door
- the lamp above the door {is} shining brightly / there {is} nothing wrong with the lamp

[onlooker: town]
a boy on the other side of the street {is} eating an ice cream
+ a child {is} eating something cold / a boy {is} having an ice cream / a boy {is} across the street
? the boy {has} bought the ice cream with his own money / the ice cream {is} the boy's lunch
- the boy {has} nothing to eat / the boy {is} drinking a cup of hot soup / the boy {is} asleep

[onlooker: town]
two old men {are} playing chess under a tree
+ some people {are} playing a game / there {are} chess players under a tree / the old men {are} not alone
? the old men {are} former teachers / one of the old men {is} about to lose / the old men {are} waiting for a third
- the old men {are} playing football / nobody {is} sitting under the tree / only one old man {is} under the tree

[onlooker: town]
a woman with a {colour} umbrella {is} waiting for a bus
+ someone {is} waiting / a woman {has} an umbrella / the umbrella {is} {colour}
? the woman with the umbrella {is} late for work / the umbrella {is} borrowed / the bus {is} already full
- the woman with the umbrella {is} riding a horse / the umbrella {is} {other} / nobody {is} waiting for a bus

[onlooker: country]
a boy on a gate {is} eating an apple
+ a child {is} eating fruit / the boy on the gate {is} eating / there {is} a boy on a gate
? the apple {is} from his own garden / the apple {is} sour / the boy on the gate {is} ten years old
- the boy on the gate {has} nothing to eat / the boy on the gate {is} drinking milk / nobody {is} on the gate

[onlooker: country]
a girl {is} sitting on a wall with a book in her hands
+ a child {is} holding a book / a girl {is} seated on a wall / the girl {is} not standing
? the book {is} about pirates / the girl {is} waiting for her brother / the book {is} from a library
- the girl {is} running / the girl {is} holding nothing at all / the wall {is} empty

[onlooker: shore]
an old man {is} looking out to sea through a telescope
+ someone {is} watching the sea / a man {is} using a telescope / the old man {is} looking at the sea
? the old man {is} waiting for a ship / the telescope {is} a family treasure
? the old man {is} a retired captain
- the old man {has} his eyes closed / no one {is} looking at the sea / the old man {is} fast asleep

[onlooker: shore]
{number} swimmers in {colour} caps {are} resting on a raft
+ some people {are} on a raft / the swimmers {are} taking a break / the swimmers {are} wearing caps
? the swimmers {are} members of a club / the swimmers {are} cold / the swimmers {will} swim back soon
- the swimmers {are} diving from a rock / the caps of the swimmers {are} {other} / the raft {is} empty

[onlooker: hall]
a child with a {colour} balloon {is} asking a lot of questions
+ a child {is} talking / the balloon {is} {colour} / somebody {is} asking questions
? the balloon {is} a birthday present / the child {is} asking about dinosaurs / the child {is} from France
- the child {is} silent / the balloon {is} {other} / the child {has} nothing to ask

[onlooker: hall]
a man near the entrance {is} speaking loudly on the telephone
+ someone {is} making a telephone call / a man {is} talking / the man near the entrance {is} not silent
? the man {is} talking to his boss / the telephone call {is} about money
- the man near the entrance {is} silent / nobody {is} using a telephone
- the man near the entrance {is} whispering

[onlooker: home workshop]
a man in the doorway {is} drinking a cup of tea
+ someone {is} drinking something / a man {is} in the doorway / the man in the doorway {has} a drink
? the tea {is} very sweet / the man in the doorway {is} a policeman / the tea {is} getting cold
- the man in the doorway {has} nothing to drink / the doorway {is} empty / the man in the doorway {is} asleep

[onlooker: home workshop]
in the next room a woman {is} singing an old song
+ someone {is} singing / there {is} a woman in the next room / the next room {is} not silent
? the woman {is} singing for a baby / the song {is} about the sea / the woman {is} a famous singer
- there {is} no sound from the next room / the next room {is} empty
- the woman in the next room {is} asleep

[count: hall]
{number} of the ten windows {are} open
+ some windows {are} open / some windows {are} closed / not all of the windows {are} closed
? the open windows {are} dirty / the windows {are} too small / the closed windows {are} locked
- all of the windows {are} open / all of the windows {are} closed / the room {has} no windows

[count: town]
there {are} {dozens} cars in the car park, and {number} of them {are} taxis
+ some of the cars {are} taxis / most of the cars {are} not taxis / there {are} more than ten cars there
? the taxis {are} waiting for a train / the car park {is} expensive / the taxi drivers {are} talking
- the car park {is} empty / all of the cars {are} taxis / none of the cars {is} a taxi

[count: hall]
there {are} {dozens} chairs in the room, and {number} of them {are} empty
+ most of the chairs {are} taken / there {are} still free chairs / more chairs {are} taken than free
? the chairs {are} uncomfortable / the empty chairs {are} reserved / the chairs {are} made of oak
- every single chair {is} taken / all the chairs {are} empty / there {are} no chairs in the room

[count: town]
of the twelve shops in the street, {number} {are} closed
+ most of the shops {are} open / not all of the shops {are} open / some shops {are} closed
? the closed shops {will} open later / two of the shops {sell} shoes / the shops {belong} to one family
- all the shops in the street {are} closed / there {is} only one shop in the street
- none of the shops {is} closed

[count: country]
{number} of the twenty trees along the path {have} lost their leaves
+ some of the trees {are} bare / most of the trees still {have} their leaves
+ there {are} trees along the path
? the bare trees {are} diseased / the trees {are} a hundred years old
- all of the trees {are} bare / every tree still {has} its leaves / there {are} no trees along the path

[count: shore]
there {are} {dozens} boats in the bay, and {number} of them {have} {colour} sails
+ some of the boats {have} {colour} sails / the bay {is} not empty
+ there {are} more than ten boats here
? the boats {are} in a race / the boats with {colour} sails {are} from the same club
- there {is} not a single boat in the bay / none of the sails {is} {colour}
- all the boats in the bay {have} {colour} sails

[count: home workshop]
{number} boxes {are} standing by the wall, and only one of them {is} open
+ most of the boxes {are} closed / one box {is} open / there {are} several boxes by the wall
? the boxes {are} full of letters / the boxes {will} be collected soon
? the open box {is} the heaviest one
- all of the boxes {are} open / all of the boxes {are} closed / there {are} no boxes by the wall

[sky: town country shore]
it {is} raining hard
+ it {is} wet outside / rain {is} falling / it {is} not dry outside
? the rain {will} stop within the hour / it {has} been raining for three days
- it {is} a dry and sunny day / there {is} not a cloud in the sky / no rain {is} falling

[sky: town country shore]
the sun {is} shining and the sky {is} clear
+ it {is} sunny / there {are} no clouds / the weather {is} fine
? it {will} be hotter in the afternoon / it {is} the warmest day of the year
- it {is} raining hard / a storm {is} raging / the sky {is} full of dark clouds

[sky: town country shore]
a cold wind {is} blowing from the north
+ it {is} windy / the wind {is} cold / the wind {is} not warm
? it {will} snow before the evening / the wind {is} stronger than usual
- there {is} no wind at all / a warm breeze {is} blowing from the south / the air {is} perfectly still

[sky: home hall workshop]
it {is} snowing outside
+ there {is} snow in the air / snow {is} falling / it {is} not a warm summer day
? the snow {is} already a metre deep / the roads {will} be closed because of the snow
- it {is} hot and sunny outside / there {is} not a single snowflake in the air

[sky: home workshop]
it {is} almost midnight
+ it {is} late / it {is} night / it {is} not midday
? the last bus {has} already gone / the moon {is} full
- it {is} early in the afternoon / it {is} time for breakfast / the midday sun {is} shining

[sky: town country shore home hall workshop]
it {is} early in the morning
+ it {is} not yet noon / the day {is} still young / it {is} not evening
? it {will} be a long day / the first bus {is} late
- it {is} late in the evening / the sun {has} just set / it {is} the middle of the afternoon

[day: town country shore home hall workshop]
it {is} {weekday}
+ it {is} a weekday / it {is} not the weekend
? it {is} a public holiday / it {is} somebody's birthday
- it {is} Sunday / it {is} the weekend / it {is} Saturday

[day: town country shore home hall workshop]
it {is} {weekend}
+ it {is} the weekend / it {is} not a weekday
? it {is} a public holiday / it {is} the first day of the month
- it {is} {weekday} / it {is} a weekday / the weekend {is} still days away
"""


def _read(block: str) -> tuple[str, frozenset[str], Fact]:
    header, _, written = block.partition("\n")
    topic, _, surroundings = header.strip("[]").partition(": ")
    return topic, frozenset(surroundings.split()), facts(written)[0]


# topic, surroundings, templates
STATEMENTS = tuple(_read(block) for block in WRITTEN.strip().split("\n\n"))
