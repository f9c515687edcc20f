-- Refuses jobs of users who are over a quota. Reads one small file of a local folder, which
-- `seatrial quota refresh` writes: slurmctld never waits for a file system or a command. Where the
-- file is missing, stale or damaged, the job is let through, and slurmctld's log says so.
-- Written by `seatrial quota write`; put it beside slurm.conf and set JobSubmitPlugins=lua there.

local USERS = @USERS@
local NOT_GIVEN = 4294967294 -- NO_VAL: the job asks for no number of nodes

local function log(text)
   slurm.log_info("%s", "seatrial quota: " .. text)
end

local function holds(list, name)
   if list == "*" then
      return true
   end
   for each in string.gmatch(list, "[^,]+") do
      if each == name then
         return true
      end
   end
   return false
end

-- Return the lines of a user's file without the first and the last; nil if they cannot count.
local function limits_of(uid)
   local file = io.open(USERS .. "/" .. uid, "r")
   if not file then
      log("no file for user " .. uid .. "; the job is let through")
      return nil
   end
   local text = file:read(65536) or ""
   file:close()
   local stamp, body = string.match(text, "^seatrial%-quota\t1\t(%d+)\n(.*)end\n$")
   if not stamp then
      log("the file of user " .. uid .. " is damaged; the job is let through")
      return nil
   end
   if os.time() > tonumber(stamp) then
      log("the file of user " .. uid .. " is stale; the job is let through")
      return nil
   end
   return body
end

local function refusal(job, uid)
   local body = limits_of(uid)
   local nodes = tonumber(job.min_nodes) or 1
   if nodes >= NOT_GIVEN then
      nodes = 1
   end
   local account = job.account or job.default_account or ""
   local pattern = "refuse\t([^\t\n]+)\t(%d+)\t([^\t\n]+)\t([^\t\n]+)\t([^\n]*)\n"
   for name, least, partitions, accounts, message in string.gmatch(body or "", pattern) do
      local asked = job.partition or job.default_partition or ""
      if nodes >= tonumber(least) and holds(accounts, account) then
         for partition in string.gmatch(asked .. ",", "([^,]*),") do
            if holds(partitions, partition) then
               return message .. " (limit " .. name .. ")"
            end
         end
      end
   end
   return nil
end

function slurm_job_submit(job, partitions, uid)
   local fine, message = pcall(refusal, job, tostring(math.floor(uid)))
   if not fine then
      log(tostring(message) .. "; the job is let through")
   elseif message then
      slurm.log_user("%s", message)
      log("refused a job of user " .. math.floor(uid) .. ": " .. message)
      return slurm.ERROR
   end
   return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
   return slurm.SUCCESS
end
