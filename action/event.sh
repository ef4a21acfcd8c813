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

# Prints why the event may give write access to the changes of a stranger; nothing if it does not. GitHub takes write access and secrets from
# `pull_request` of another repository, and from no other event.
foreign_with_rights() {
  node -e '
    const { GITHUB_EVENT_NAME: name = "", GITHUB_EVENT_PATH: path = "", GITHUB_REPOSITORY: repository } = process.env
    let event = {}
    try { event = JSON.parse(require("fs").readFileSync(path, "utf8")) } catch {}
    if (name === "pull_request_target") console.log("pull_request_target gives write access to foreign changes. Use pull_request.")
    if (name === "workflow_run" && event.workflow_run?.head_repository?.full_name !== repository)
      console.log("workflow_run gives write access to foreign changes: its branch is in another repository.")
    if (name.startsWith("issue") && event.issue?.pull_request)
      console.log(`${name} on a pull request gives write access, and does not say whose changes they are. Use pull_request.`)
  '
}

# Whether the checkout has left a token in the settings of the repository, which commands of the agent can read.
has_stored_token() {
  git config --local --includes --get-regexp '^http\..*\.extraheader$' >/dev/null 2>&1
}
