# Definitions of jq 1.7 that jaq lacks or defines differently.

def debug: .;
def debug(messages): .;
def stderr: .;

def add(f): reduce f as $x (null; . + $x);
def add: add(.[]);

def del(f): delpaths([path(f)]);
def to_entries: [keys[] as $key | {$key, value: .[$key]}];
def from_entries:
  reduce .[] as $entry ({};
    . + { ($entry
           | if type != "object" then error("from_entries needs objects") end
           | (if .key != null then .key elif .k != null then .k elif .name != null then .name
              elif .Name != null then .Name elif .Key != null then .Key elif .K != null then .K
              elif has("key") then .key elif has("k") then .k else .name end)
           | if type == "string" then . else tojson end)
        : ($entry
           | if has("value") then .value elif has("v") then .v elif has("Value") then .Value else .V end) });
def with_entries(f): to_entries | map(f) | from_entries;
def walk(f):
  def rec: (if type == "object" then map_values(rec) elif type == "array" then map(rec) end) | f;
  rec;

def pick(f): . as $top | reduce path(f) as $path (null; setpath($path; $top | getpath($path)));

def join($separator):
  map(if . == null then "" elif type == "number" or type == "boolean" then tojson else . end)
  | if length == 0 then "" else reduce .[1:][] as $x ("" + .[0]; . + $separator + $x) end;

# A part of the date that the format lacks is that of 1900-01-01.
def strptime($format):
  . as $text
  | try strptime_($format) catch ("1900-01-01 " + $text | strptime_("%Y-%m-%d " + $format));

def leaf_paths: paths(scalars);
def isvalid(f): try (f | true) catch false;
def toarray: if type == "array" then . else [.] end;
def ascii: [.] | implode;
def have_literal_numbers: true;
def have_decnum: false;

def IN(source): any(source == .; .);
def IN(source; values): any(source == values; .);
def INDEX(stream; key): reduce stream as $row ({}; .[$row | key | tostring] |= $row);
def INDEX(key): INDEX(.[]; key);

def tostream:
  def events($path):
    if (type == "object" or type == "array") and length > 0
    then keys as $keys | ($keys[] as $key | .[$key] | events($path + [$key])), [$path + $keys[-1:]]
    else [$path, .] end;
  events([]);
def truncate_stream(stream):
  . as $n | null | stream | if (.[0] | length) > $n then .[0] |= .[$n:] else empty end;
def fromstream(stream):
  foreach stream as $event ({emit: false};
    (if .emit then {emit: false} end)
    | if ($event | length) == 2
      then .value |= (. | setpath($event[0]; $event[1])) | .emit = ($event[0] | length == 0)
      else .emit = ($event[0] | length == 1) end;
    if .emit then .value else empty end);

def @csv:
  map(if type == "string" then "\"" + gsub("\""; "\"\"") + "\""
      elif type == "number" or type == "boolean" then tojson
      elif . == null then ""
      else error("only scalars fit into a row of @csv") end)
  | join(",");
def @tsv:
  map(if type == "string"
      then gsub("\\\\"; "\\\\") | gsub("\t"; "\\t") | gsub("\n"; "\\n") | gsub("\r"; "\\r")
      elif type == "number" or type == "boolean" then tojson
      elif . == null then ""
      else error("only scalars fit into a row of @tsv") end)
  | join("\t");
# jq returns values that are not texts as they are.
def ltrimstr($x): if type == "string" and ($x | type) == "string" and startswith($x) then .[($x | length):] else . end;
def rtrimstr($x): if type == "string" and ($x | type) == "string" and endswith($x) and $x != "" then .[:-($x | length)] else . end;
