# Two commands on a fresh machine: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-fast test-peers test-lerobot test-robosuite bench-robosuite lint format docs bench clean

demo: $(VENV)/simulator
	$(BIN)/elute tour

test: $(VENV)/dev
	$(BIN)/python -m pytest -n 2 -m "not peers"

test-fast: $(VENV)/dev
	$(BIN)/python -m pytest -n 2 -m "not slow and not peers"

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/docs
	$(BIN)/mkdocs build --strict

bench: $(VENV)/bench .venv-imitation/ready
	$(BIN)/python -m benchmarks.formats
	$(BIN)/python -m benchmarks.purify
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.rollout
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.trpo
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.bc
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.gail

test-peers: .venv-robomimic/ready .venv-rliable/ready .venv-imitation/ready $(VENV)/bench
	.venv-robomimic/bin/python -m pytest -m peers tests/peers/test_robomimic_reads.py
	.venv-rliable/bin/python -m pytest -m peers tests/peers/test_rliable.py
	.venv-imitation/bin/python -m pytest -m peers tests/peers/test_imitation_reads.py
	$(BIN)/python -m pytest -m peers tests/peers/test_sb3_trpo.py

test-lerobot: .venv-lerobot/ready
	HF_HUB_OFFLINE=1 .venv-lerobot/bin/python -m pytest -m peers tests/peers/test_lerobot_reads.py

# The robot task on the platform that the paper names, with numpy 1.
test-robosuite: .venv-robosuite/ready
	.venv-robosuite/bin/python -m pytest -m peers tests/peers/test_robosuite_reach.py tests/peers/test_robosuite_plays.py

bench-robosuite: .venv-robosuite/ready
	OMP_NUM_THREADS=1 .venv-robosuite/bin/python -m benchmarks.sawyer

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/core: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable .
	touch $@

$(VENV)/simulator: $(VENV)/core
	$(PIP) --editable ".[mujoco]"
	touch $@

$(VENV)/dev: $(VENV)/core
	$(PIP) --editable ".[dev]"
	touch $@

$(VENV)/bench: $(VENV)/dev
	$(PIP) --editable ".[bench]"
	touch $@

$(VENV)/docs: $(VENV)/core
	$(PIP) --editable ".[docs]"
	touch $@

# robomimic's published release pins the past, so it lives apart and without its dependencies.
.venv-robomimic/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-robomimic
	.venv-robomimic/bin/python -m pip install --quiet --constraint constraints.txt --editable . pytest hypothesis tqdm termcolor six psutil
	.venv-robomimic/bin/python -m pip install --quiet --no-deps robomimic==0.3.0
	touch $@

# rliable needs an older pandas.
.venv-rliable/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-rliable
	.venv-rliable/bin/python -m pip install --quiet --constraint constraints.txt --editable . pytest hypothesis scipy rliable==1.2.0 "pandas<3"
	touch $@

# imitation freezes Gymnasium and Stable-Baselines3 in the past; what its BC and GAIL do not use stays out.
.venv-imitation/ready: Makefile
	$(PYTHON) -m venv .venv-imitation
	.venv-imitation/bin/python -m pip install --quiet torch==2.13.0 "numpy<2" "pandas<3" "matplotlib<3.11" scikit-learn mujoco==2.3.7 imageio rich tqdm cloudpickle tensorboard
	.venv-imitation/bin/python -m pip install --quiet --no-deps imitation==1.0.1 stable-baselines3==2.2.1 sb3-contrib==2.2.1 gymnasium==0.29.1 farama-notifications seals==0.2.1
	.venv-imitation/bin/python -m pip install --quiet "numpy<2" "pandas<3" "datasets<5" "pyarrow<22" jsonpickle h5py pydantic pytest hypothesis
	.venv-imitation/bin/python -m pip install --quiet --no-deps --editable .
	touch $@

# LeRobot wants an older torch and torchvision; its data sets need neither.
.venv-lerobot/ready: pyproject.toml constraints-lerobot.txt
	$(PYTHON) -m venv .venv-lerobot
	.venv-lerobot/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-lerobot.txt --editable ".[lerobot,video]" pytest hypothesis datasets accelerate pandas pillow av jsonlines packaging einops draccus termcolor deepdiff
	.venv-lerobot/bin/python -m pip install --quiet --disable-pip-version-check --no-deps lerobot==0.4.4
	touch $@

.venv-robosuite/ready: pyproject.toml constraints-robosuite.txt
	$(PYTHON) -m venv .venv-robosuite
	.venv-robosuite/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-robosuite.txt --editable ".[robosuite]" pytest hypothesis
	touch $@

clean:
	rm -rf $(VENV) .venv-robomimic .venv-lerobot .venv-robosuite .venv-imitation .venv-rliable site .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
