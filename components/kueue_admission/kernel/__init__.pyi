from .duration import Duration as Duration
from .problem import Problem as Problem
from .problem import SpecError as SpecError
from .problem import errors_of as errors_of
from .quantity import Quantity as Quantity
