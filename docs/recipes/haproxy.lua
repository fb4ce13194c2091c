-- Asks the Grapevine sidecar whether a request may pass. See haproxy.md.
-- haproxy.cfg names the address of the decision API: http-request lua.grapevine HOST:PORT
-- Refuses with the sidecar's own answer. Else leaves in the transaction: grapevine.asked (false: nobody
-- answered) and the rate-limit headers as grapevine.HEADER, dashes as underscores.

-- What the client may not say for itself: HAProxy speaks for it in these.
local ours = {
  ["x-forwarded-method"] = true,
  ["x-forwarded-uri"] = true,
  ["x-forwarded-host"] = true,
  ["x-forwarded-for"] = true,
  ["x-real-ip"] = true,
  ["x-original-method"] = true,
  ["x-original-uri"] = true,
  ["x-original-url"] = true,
  ["x-envoy-original-path"] = true,
}

-- What belongs to the client's connection or body and not to the question.
local hop = {
  ["host"] = true,
  ["connection"] = true,
  ["content-length"] = true,
  ["transfer-encoding"] = true,
  ["expect"] = true,
  ["upgrade"] = true,
  ["te"] = true,
  ["trailer"] = true,
  ["keep-alive"] = true,
  ["proxy-connection"] = true,
}

-- What a refusal brings to the client.
local refusal_headers = {
  "retry-after",
  "ratelimit",
  "ratelimit-policy",
  "x-ratelimit-limit",
  "x-ratelimit-remaining",
  "x-ratelimit-reset",
  "x-ratelimit-used",
  "x-ratelimit-resource",
  "x-ratelimit-degraded",
  "cache-control",
  "content-type",
}

-- What an admitted request's response gets, see haproxy.cfg.
local limit_headers = {
  "ratelimit",
  "ratelimit-policy",
  "x-ratelimit-limit",
  "x-ratelimit-remaining",
  "x-ratelimit-reset",
  "x-ratelimit-degraded",
}

local function question(txn)
  local headers = {}
  for name, values in pairs(txn.http:req_get_headers()) do
    if not ours[name] and not hop[name] then
      local list = {}
      for index = 0, #values do
        list[#list + 1] = values[index]
      end
      headers[name] = list
    end
  end
  local host = txn.sf:req_fhdr("host")
  headers["x-forwarded-method"] = { txn.sf:method() }
  headers["x-forwarded-uri"] = { txn.sf:pathq() }
  headers["x-forwarded-for"] = { txn.sf:src() }
  if host ~= "" then
    headers["x-forwarded-host"] = { host }
  end
  return headers
end

core.register_action("grapevine", { "http-req" }, function(txn, address)
  local answer = core.httpclient():get({
    url = "http://" .. address .. "/v1/auth",
    headers = question(txn),
    -- Longer than the maxWait of any leaky-bucket rule: the delay is spent in here.
    timeout = 5000,
  })
  -- HAProxy makes a 503 when nobody answers; what the sidecar says carries this mark.
  if not (answer and answer.headers and answer.headers["x-ratelimit-decision"]) then
    txn:set_var("txn.grapevine.asked", false)
    return
  end
  txn:set_var("txn.grapevine.asked", true)
  if answer.status == 200 then
    for _, name in ipairs(limit_headers) do
      local values = answer.headers[name]
      if values then
        txn:set_var("txn.grapevine." .. name:gsub("-", "_"), values[0])
      end
    end
    return
  end
  local reply = txn:reply({ status = answer.status, body = answer.body })
  for _, name in ipairs(refusal_headers) do
    local values = answer.headers[name]
    if values then
      reply:add_header(name, values[0])
    end
  end
  txn:done(reply)
end, 1)
