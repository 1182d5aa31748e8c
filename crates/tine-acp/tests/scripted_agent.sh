# An agent that says some things in lines that are too long, for the recorder to stand before.
long=$(head -c 20000 /dev/zero | tr '\0' x)
say() { printf '%s\n' "$1"; }
update() { say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"one","update":'"$1"'}}'; }
chunk() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"id":\([0-9]*\),.*/\1/p')
  result='{}'
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"session/new"'*) result='{"sessionId":"one"}' ;;
    *'say it'*)
      chunk 'before '
      chunk "$long"
      chunk ' behind'
      update '{"sessionUpdate":"tool_call","toolCallId":"c","title":"Look","status":"in_progress"}'
      update '{"content":[{"type":"content","content":{"type":"text","text":"'"$long"'"}}],"status":"completed","toolCallId":"c","sessionUpdate":"tool_call_update"}'
      result='{"stopReason":"end_turn"}' ;;
    *'ask for it'*)
      say '{"jsonrpc":"2.0","params":{"content":"'"$long"'","sessionId":"one"},"method":"fs/write_text_file","id":"q"}'
      IFS= read -r answer
      case "$answer" in *'"error"'*'"id":"q"'*) chunk 'it was refused' ;; *) chunk 'it was not' ;; esac
      result='{"stopReason":"end_turn"}' ;;
    *'answer it'*)
      chunk 'so far'
      result='{"_meta":{"x":"'"$long"'"},"stopReason":"end_turn"}' ;;
  esac
  [ -z "$id" ] || say '{"jsonrpc":"2.0","result":'"$result"',"id":'"$id"'}'
done
