"""The names of files in the directory of a build."""

LOG = "build.log"
LOCK = "seatrial.lock"
SCRIPT = "seatrial.script"
JOB = "seatrial.sh"
RESULT = "seatrial.result"
