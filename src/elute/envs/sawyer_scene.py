"""The scene of `sawyer-reach` as MuJoCo's XML, written from the numbers of `sawyer_arm`.

Plain shapes, no meshes: seven links and a rigid open gripper, a table with two pegs, a nut that
can be pushed. The arm touches table, pegs and nut, but not itself. Joints are driven by

    torque_j = gain_j (target_j - velocity_j)

and what holds the arm up against gravity is added by the environment.
"""

from collections.abc import Iterable

from elute.envs.sawyer_arm import (
    BASE,
    FINGERS,
    GAINS,
    HAND,
    HANDLE,
    HEAD,
    LINKS,
    NUT_HEIGHT,
    PEGS,
    TABLE,
    Link,
)

TIMESTEP = 0.002
RED, DARK, WOOD = "0.75 0.2 0.2 1", "0.25 0.25 0.28 1", "0.72 0.6 0.45 1"

# Who touches whom: the arm table, pegs and nut; the nut table and pegs; what is only seen nothing.
ARM = 'contype="1" conaffinity="0"'
FIXED = 'contype="2" conaffinity="1"'
BRASS = 'contype="4" conaffinity="3" rgba="0.85 0.7 0.3 1"'
SEEN = 'contype="0" conaffinity="0"'

SHAPES = (
    f'<geom {SEEN} type="cylinder" size="0.075 0.16" pos="0.02 0 0.08" rgba="{RED}"/>',
    f'<geom {SEEN} type="capsule" size="0.06" fromto="0 0 0 0 -0.14 0.1425" rgba="{RED}"/>',
    f'<geom {SEEN} type="capsule" size="0.055" fromto="0 0 0 0 -0.042 0.26" rgba="{RED}"/>',
    f'<geom {SEEN} type="capsule" size="0.05" fromto="0 0 0 0 -0.125 -0.1265" rgba="{RED}"/>',
    f'<geom {ARM} type="capsule" size="0.045" fromto="0 0 0.06 0 0 0.26" rgba="{RED}"/>',
    f'<geom {ARM} type="capsule" size="0.045" fromto="0 0 0 0 -0.08 0.1" rgba="{RED}"/>',
    f'<geom {ARM} type="cylinder" size="0.04 0.02" pos="0 0 0" rgba="{DARK}"/>',
)
"""Of the links; those that cannot reach the table are only seen."""


def scene() -> str:
    """The whole of it."""
    return f"""
<mujoco model="sawyer-reach">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="{TIMESTEP}"><flag autoreset="disable"/></option>
  <visual>
    <headlight ambient="0.45 0.45 0.45" diffuse="0.5 0.5 0.5"/>
    <global offwidth="960" offheight="720"/>
  </visual>
  <asset>
    <texture type="skybox" builtin="flat" rgb1="1 1 1" rgb2="1 1 1" width="8" height="48"/>
  </asset>
  <worldbody>
    <camera name="front" pos="1.65 -1.2 1.7" xyaxes="0.68 0.733 0 -0.272 0.252 0.929"/>
    <light pos="0.8 -0.5 3" dir="-0.1 0.1 -1" diffuse="0.35 0.35 0.35" specular="0.1 0.1 0.1"/>
    {_furniture()}
    {_arm()}
    <body name="nut" pos="0.4675 -0.1675 {NUT_HEIGHT}">
      <freejoint name="nut"/>
      <geom {BRASS} mass="0.015" type="cylinder" size="0.05 0.01"/>
      <geom {BRASS} mass="0.004" type="box" size="0.02525 0.015875 0.01" pos="{HANDLE} 0 0"/>
    </body>
  </worldbody>
  <actuator>
    {_servos()}
  </actuator>
</mujoco>"""


def _furniture() -> str:
    square, round_ = PEGS["square"], PEGS["round"]
    top = f'pos="0.58 0 {TABLE - 0.025}" size="0.34 0.4 0.025"'
    height = f"{TABLE + 0.03}"
    return f"""<geom {FIXED} type="box" {top} rgba="{WOOD}"/>
    <geom {SEEN} type="box" pos="0.58 0 0.3975" size="0.05 0.05 0.3975" rgba="{DARK}"/>
    <geom {SEEN} type="cylinder" pos="0 0 0.4565" size="0.12 0.4565" rgba="{DARK}"/>
    <geom {FIXED} type="box" pos="{_text(square)} {height}" size="0.016 0.016 0.1" rgba="{DARK}"/>
    <geom {FIXED} type="cylinder" pos="{_text(round_)} {height}" size="0.02 0.1" rgba="{DARK}"/>"""


def _arm() -> str:
    """Links, one inside the other."""
    inner = _hand()
    for j in reversed(range(len(LINKS))):
        link = LINKS[j]
        head = _head() if j == 0 else ""
        damping = f' damping="{link.damping}"' if link.damping else ""
        start = BASE if j == 0 else (0.0, 0.0, 0.0)
        place = tuple(a + b for a, b in zip(start, link.position, strict=True))
        inner = f"""<body name="link{j}" pos="{_text(place)}" quat="{_text(link.orientation)}">
      {_inertia(link)}
      <joint name="joint{j}" axis="0 0 1" range="{_text(link.span)}"{damping}/>
      {SHAPES[j]}
      {head}{inner}
    </body>"""
    return inner


def _head() -> str:
    return f"""<body pos="{_text(HEAD.position)}">
      {_inertia(HEAD)}
      <geom {SEEN} type="box" size="0.02 0.12 0.07" pos="0.03 0 0.11" rgba="{DARK}"/>
    </body>"""


def _hand() -> str:
    position, orientation = HAND
    fingers = "".join(
        _finger(side, at) for side, at in zip((1, -1), (FINGERS[0], -FINGERS[1]), strict=True)
    )
    return f"""<body name="hand" pos="{_text(position)}" quat="{_text(orientation)}">
        <body pos="0 0 0.025">
          <inertial pos="0 0 0" mass="0.3" diaginertia="1e-9 1e-9 1e-9"/>
          <geom {ARM} type="cylinder" size="0.029 0.02" pos="0 0 0" rgba="{DARK}"/>
          {fingers}
        </body>
      </body>"""


def _finger(side: int, opening: float) -> str:
    """A finger and its tip, which ends 3.5 mm beyond the grip point."""
    shape = f'{ARM} type="box" rgba="{DARK}"'
    return f"""<body pos="0 {side * (0.01 + opening)} 0.02">
            <inertial pos="0 0 0" mass="0.02" diaginertia="0.01 0.01 0.01"/>
            <geom {shape} size="0.005 0.007 0.036" pos="0 {side * 0.017} 0.036"/>
            <body pos="0 {side * 0.01725} 0.075">
              <inertial pos="0 0 0" mass="0.01" diaginertia="0.01 0.01 0.01"/>
              <geom {shape} size="0.004 0.004 0.0175" pos="0 {-side * 0.0045} -0.014"/>
            </body>
          </body>"""


def _inertia(link: Link) -> str:
    where = f'pos="{_text(link.centre)}" quat="{_text(link.axes)}"'
    return f'<inertial {where} mass="{link.mass}" diaginertia="{_text(link.inertia)}"/>'


def _servos() -> str:
    return "".join(f'<velocity joint="joint{j}" kv="{gain}"/>' for j, gain in enumerate(GAINS))


def _text(numbers: Iterable[float]) -> str:
    return " ".join(f"{number:.10g}" for number in numbers)
