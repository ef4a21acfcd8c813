import { runChat } from '../run-chat.ts'
import { ScriptedSource } from './scripted-source.ts'

/** A chat whose process is not told by a signal that its terminal has gone. Ends with 7 when it has closed in order. */
process.on('SIGHUP', () => undefined)
const source = new ScriptedSource()
const { handle } = source.opened('first')
await runChat({
  source,
  first: source.opened('first'),
  look: { theme: 'dark', vim: false, screenReader: process.argv[2] === 'plain', altScreen: true, colour: true },
  cwd: process.cwd(),
  home: process.cwd(),
  env: {},
})
process.exit(handle.isClosed ? 7 : 1)
