/**
 * Runs in the browser. It takes the pairing code from the fragment or the form, sends it only to the server of the page,
 * and inserts server text as text, never as markup. The token is in a cookie that it cannot read.
 */
export const pageScript = `'use strict'
const part = (id) => document.getElementById(id)

/** In the order of their rights: each includes the previous ones. */
const rights = {
  view: ['View', 'Watch sessions, search, read the log.'],
  queue: ['Queue', 'Watch sessions and queue messages for them. Starts no run.'],
  approve: ['Approve', 'Watch, queue messages, answer permission requests and questions.'],
  drive: ['Drive', 'Everything: prompt, run commands, change the model, invite other devices.'],
  metrics: ['Metrics', 'Read the metrics, and nothing else.'],
  host: ['Host', 'Connect a tool host, and nothing else.'],
}

class Problem extends Error {
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

/** The JSON of a response. The path is relative to this page. */
async function ask(path, body) {
  const init = body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const response = await fetch(path, { ...init, redirect: 'error' }).catch(() => {
    throw new Problem(0, 'The server does not answer. Check that tapetree serve is running and that this device can reach it.')
  })
  const text = await response.text()
  let json = {}
  try {
    json = JSON.parse(text)
  } catch {
    // A proxy may answer with a page of its own.
  }
  if (!response.ok) throw new Problem(response.status, json.detail || json.title || 'The server answered ' + response.status + '.')
  return json
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...children)
  return made
}

function tell(sentence) {
  part('notice').hidden = !sentence
  part('notice').textContent = sentence || ''
}

const deadCode =
  'This pairing code has expired, was already used, or has a typing mistake. A code works once, for five minutes. ' +
  'Press Enter in the terminal of tapetree serve for a new one.'

function sentenceOf(error) {
  return error.status === 401 ? deadCode : error.message
}

/** Disables the button of a form until its work has ended, and shows why it failed. */
function onSubmit(form, work) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const button = form.querySelector('button')
    if (button.disabled) return
    button.disabled = true
    tell()
    try {
      await work()
    } catch (error) {
      tell(sentenceOf(error))
    } finally {
      button.disabled = false
    }
  })
}

let caller
let code = ''

function show(section, { focus = true } = {}) {
  for (const each of ['pair', 'list']) part(each).hidden = each !== section
  if (focus) part(section + '-title').focus()
  if (section === 'pair') stopFollowing()
}

function showCodeForm(sentence) {
  tell(sentence)
  part('grant-form').hidden = true
  part('code-form').hidden = false
  show('pair', { focus: false })
  part('code').focus()
}

async function offer(given) {
  const { role } = await ask('api/pair/preview', { code: given })
  code = given
  const names = Object.keys(rights)
  const offered = role === 'metrics' || role === 'host' ? [role] : names.slice(0, names.indexOf(role) + 1).reverse()
  part('roles').replaceChildren(
    ...offered.map((name) =>
      element(
        'label',
        {},
        element('input', { type: 'radio', name: 'role', value: name, checked: name === role }),
        element('span', {}, rights[name][0] + (name === role ? ' (granted)' : '')),
        element('small', {}, rights[name][1]),
      ),
    ),
  )
  part('replaces').hidden = !caller
  if (caller) part('replaces').textContent = 'This device is already paired with the role ' + caller.role + '. Pairing again replaces that.'
  part('code').value = ''
  part('code-form').hidden = true
  part('grant-form').hidden = false
  show('pair')
}

onSubmit(part('code-form'), () => offer(part('code').value))

onSubmit(part('grant-form'), async () => {
  const role = part('grant-form').querySelector('input[name=role]:checked').value
  try {
    const paired = await ask('api/pair', { code, role, name: part('device').value })
    remember(paired.id)
  } catch (error) {
    if (error.status === 401) return showCodeForm(deadCode)
    throw error
  }
  code = ''
  await enter()
})

part('cancel').addEventListener('click', () => {
  code = ''
  if (caller) enter().catch((error) => tell(error.message))
  else showCodeForm()
})

/** The id of the token that this page got, which is no secret: signing out revokes no token that others use. */
function remember(tokenId) {
  try {
    localStorage.setItem('tapetree-token-id', tokenId)
  } catch {
    // Without storage, signing out only deletes the cookie.
  }
}

function isOurs(tokenId) {
  try {
    return localStorage.getItem('tapetree-token-id') === tokenId
  } catch {
    return false
  }
}

part('sign-out').addEventListener('click', async () => {
  try {
    await ask('api/sign-out', { revoke: isOurs(caller.token_id) })
    caller = undefined
    sessions.clear()
    draw()
    showCodeForm()
  } catch (error) {
    tell(error.message)
  }
})

/** Shows the list if the cookie is valid; otherwise throws a problem with the status 401. */
async function enter() {
  caller = await ask('api/caller')
  const [title, meaning] = rights[caller.role] || [caller.role, '']
  part('role').textContent = 'This device has the role ' + title.toLowerCase() + '. ' + meaning
  const base = location.origin + location.pathname.replace(/\\/[^/]*$/, '')
  part('attach').textContent = 'tapetree attach ' + base
  tell()
  show('list')
  if (caller.role !== 'metrics' && caller.role !== 'host') follow()
}

const sessions = new Map()
let olderPages
let feed
let retryMs = 0
let retry

function stopFollowing() {
  clearTimeout(retry)
  if (feed) feed.close()
  feed = undefined
  part('connection').textContent = ''
}

/** The feed reports changes only, so the list is loaded once the feed is ready. Changes that arrive meanwhile are newer. */
function follow() {
  stopFollowing()
  part('connection').textContent = 'Connecting…'
  const events = new EventSource('api/events')
  feed = events
  let changed = new Set()
  events.addEventListener('ready', async () => {
    changed = new Set()
    retryMs = 0
    try {
      const page = await ask('api/sessions?limit=50')
      if (feed !== events) return
      const kept = new Map([...sessions].filter(([id]) => changed.has(id)))
      sessions.clear()
      for (const session of page.sessions) if (!changed.has(session.id)) sessions.set(session.id, session)
      for (const [id, session] of kept) sessions.set(id, session)
      olderPages = page.cursor
      part('connection').textContent = 'Live'
      draw()
    } catch {
      again(events)
    }
  })
  events.addEventListener('session_changed', (event) => {
    const { session } = JSON.parse(event.data)
    changed.add(session.id)
    sessions.set(session.id, session)
    draw()
  })
  events.addEventListener('session_removed', (event) => {
    const { session_id: id } = JSON.parse(event.data)
    changed.add(id)
    sessions.delete(id)
    draw()
  })
  events.addEventListener('error', () => again(events))
}

/** Waits a little longer each time. A token that was revoked or has expired leads back to pairing. */
function again(events) {
  if (feed !== events) return
  stopFollowing()
  part('connection').textContent = 'Reconnecting…'
  retryMs = Math.min(retryMs * 2 || 500, 15000)
  retry = setTimeout(async () => {
    try {
      caller = await ask('api/caller')
      follow()
    } catch (error) {
      if (error.status !== 401) return again(feed)
      caller = undefined
      sessions.clear()
      showCodeForm('The access of this device has ended. Pair it again.')
    }
  }, retryMs)
}

part('more').addEventListener('click', async () => {
  try {
    const page = await ask('api/sessions?limit=50&cursor=' + encodeURIComponent(olderPages))
    for (const session of page.sessions) if (!sessions.has(session.id)) sessions.set(session.id, session)
    olderPages = page.cursor
    draw()
  } catch (error) {
    tell(error.message)
  }
})

/** Its class, its label and, if it did not go well, the reason. */
function statusOf({ status, stopped, failed }) {
  if (status === 'requires_action') return ['needs-you', 'Needs you']
  if (stopped) return ['failed', stopped.type === 'interrupted' ? 'Interrupted' : 'Failed', stopped.reason]
  if (status === 'running') return ['running', 'Running']
  if (failed) return ['failed', 'Failed', failed.reason]
  return ['idle', status === 'ended' ? 'Ended' : 'Idle']
}

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

function timeAgo(time) {
  const seconds = Math.min(0, (Date.parse(time) - Date.now()) / 1000)
  const units = [['day', 86400], ['hour', 3600], ['minute', 60]]
  const [unit, length] = units.find(([, each]) => -seconds >= each) || []
  return unit ? relative.format(Math.ceil(seconds / length), unit) : 'just now'
}

function draw() {
  const rows = [...sessions.values()].filter(({ subagent }) => !subagent)
  const asks = ({ status }) => Number(status === 'requires_action')
  rows.sort((a, b) => asks(b) - asks(a) || (a.modified < b.modified ? 1 : a.modified > b.modified ? -1 : 0))
  part('sessions').replaceChildren(...rows.map(rowOf))
  part('sessions').hidden = rows.length === 0
  part('empty').hidden = rows.length > 0
  part('more').hidden = !olderPages
  const waiting = rows.filter(({ status }) => status === 'requires_action').length
  document.title = waiting > 0 ? '(' + waiting + ') tapetree' : 'tapetree'
}

function rowOf(session) {
  const [kind, label, reason] = statusOf(session)
  const facts = [
    session.cwd,
    session.queue_length > 0 && session.queue_length + ' queued',
    session.damaged && 'its log is damaged',
  ].filter(Boolean)
  return element(
    'li',
    {},
    element('b', {}, session.name || session.first_text || 'Untitled session'),
    element('span', { className: 'status ' + kind }, label),
    ...(reason ? [element('small', { className: 'reason' }, reason)] : []),
    element('small', {}, element('time', { dateTime: session.modified }, timeAgo(session.modified)), ...facts.map((fact) => ' · ' + fact)),
  )
}

setInterval(() => {
  for (const time of document.querySelectorAll('time')) time.textContent = timeAgo(time.dateTime)
}, 30000)

function deviceName() {
  const system = ['iPhone', 'iPad', 'Android', 'Mac', 'Windows', 'Linux'].find((each) => navigator.userAgent.includes(each))
  return 'browser' + (system ? ' on ' + system : '')
}

/** The code leaves the address bar and the history at once. */
function takeCode() {
  const given = new URLSearchParams(location.hash.slice(1)).get('pair')
  if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search)
  return given
}

async function start() {
  const given = takeCode()
  try {
    if (!given) return await enter()
    caller = await ask('api/caller').catch((error) => {
      if (error.status !== 401) throw error
    })
    await offer(given)
  } catch (error) {
    // Without a code, 401 only means that this browser is not paired.
    showCodeForm(error.status === 401 && !given ? undefined : sentenceOf(error))
  }
}

part('device').value = deviceName()
window.addEventListener('hashchange', start)
start()
`
