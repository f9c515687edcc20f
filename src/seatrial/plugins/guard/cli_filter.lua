-- Asks the guard about each program that srun, or a script that sbatch and salloc are to start.
-- Written by `seatrial guard write`; put it beside slurm.conf and set CliFilterPlugins=lua there
-- (cli_filter/lua in newer versions of Slurm). It needs no package of Lua. A guard that cannot be
-- asked stops no launch.

local GUARD = @GUARD@

local function quoted(text)
   return "'" .. string.gsub(tostring(text), "'", "'\\''") .. "'"
end

-- Return a whole number of an option as a flag of the guard, or "".
local function flag(letter, value)
   local number = string.match(tostring(value or ""), "^%d+")
   return number and (" -" .. letter .. " " .. number) or ""
end

local function command(options)
   local words = { "exec", quoted(GUARD), "launch" }
   local line = table.concat(words, " ") .. flag("n", options["ntasks"])
   line = line .. flag("N", options["nodes"]) .. flag("c", options["cpus-per-task"])
   line = line .. " -l argv --"
   for _, word in ipairs(options["argv"] or {}) do
      line = line .. " " .. quoted(word)
   end
   return line .. " 2>/dev/null"
end

function slurm_cli_setup_defaults(options, early)
   return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, pack)
   local answer = io.popen(command(options), "r")
   if not answer then
      return slurm.SUCCESS
   end
   local refused = false
   for line in answer:lines() do
      local word, text = string.match(line, "^(%a+)\t(.*)$")
      if word == "refuse" then
         refused = true
         slurm.log_error("%s", text)
      elseif word == "warn" then
         slurm.log_info("warning: %s", text)
      elseif word == "log" then
         slurm.log_info("the log of the launch guard: %s", text)
      end
   end
   answer:close()
   if refused then
      return slurm.ERROR
   end
   return slurm.SUCCESS
end

function slurm_cli_post_submit(pack, job, step)
   return slurm.SUCCESS
end
