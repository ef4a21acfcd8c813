# Functions of the steps of action.yml.

# Prints a member of the JSON object on stdin; nothing if there is none.
member() {
  node -e 'let t="";process.stdin.on("data",(c)=>t+=c).on("end",()=>{try{process.stdout.write(String(JSON.parse(t)[process.argv[1]]??""))}catch{}})' "$1"
}

# Prints the number of the pull request if its branch is in this repository; nothing otherwise.
own_pull_request() {
  [ "${GITHUB_EVENT_NAME:-}" = pull_request ] || return 0
  node -e '
    const { pull_request: p } = JSON.parse(require("fs").readFileSync(process.env.GITHUB_EVENT_PATH, "utf8"))
    const isOwn = p?.head?.repo?.full_name === process.env.GITHUB_REPOSITORY && p?.base?.repo?.full_name === process.env.GITHUB_REPOSITORY
    if (isOwn && Number.isInteger(p.number)) console.log(p.number)
  '
}
