import { RemoteSession, RestClient } from '@tapetree/client'
import { textOf } from '@tapetree/session'

const baseUrl = `${location.origin}/agent`
const sessionId = location.hash.slice(1) || (await new RestClient({ baseUrl }).createSession({})).id
location.hash = sessionId
const session = await RemoteSession.open({ baseUrl, sessionId, client: { kind: 'web' } })
const [talk, form, input] = [element('main'), element('form'), element('input')]
session.subscribe(draw)
form.addEventListener('submit', (event) => {
  event.preventDefault()
  void session.prompt(input.value)
  input.value = ''
})

/** What was said, then what the model is saying now. */
function draw(): void {
  const { path, inFlight } = session.transcript
  const said = [...path.items].map((item) =>
    item.type === 'user' ? textOf({ content: [...item.content] }) : 'parts' in item ? shown(item.parts) : '',
  )
  const now = [...inFlight.values()].map(({ parts }) => shown(parts))
  const paragraphs = [...said, ...now].filter((text) => text !== '')
  talk.replaceChildren(...paragraphs.map((text) => Object.assign(document.createElement('p'), { textContent: text })))
}

function shown(parts: readonly object[]): string {
  return parts.map((part) => ('text' in part ? part.text : '')).join('')
}

function element<Name extends keyof HTMLElementTagNameMap>(name: Name): HTMLElementTagNameMap[Name] {
  return document.querySelector(name) ?? document.createElement(name)
}
