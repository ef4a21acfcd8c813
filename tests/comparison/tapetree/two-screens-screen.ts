import { RemoteSession } from '@tapetree/client'

const [address = '{}', question] = process.argv.slice(2)
const session = await RemoteSession.open(JSON.parse(address))
session.subscribe(() => {
  const { path, inFlight } = session.transcript
  const items = [...path.items, ...inFlight.values()]
  const parts = items.flatMap<object>((item) => ('parts' in item ? item.parts : []))
  console.log(JSON.stringify(parts.map((part) => ('text' in part ? part.text : '')).join('')))
})
if (question !== undefined) await session.prompt(question)
