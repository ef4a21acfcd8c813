import { runChat } from '../run-chat.ts'
import { ScriptedSource } from './scripted-source.ts'

/** A chat whose process gets no signal when its terminal is gone. Exits with 7 after a clean shutdown. */
process.on('SIGHUP', () => undefined)
const source = new ScriptedSource()
const { handle } = source.opened('first')
await runChat({
  source,
  first: source.opened('first'),
  look: { theme: 'dark', vim: false, screenReader: process.argv[2] === 'plain', altScreen: true, color: true },
  cwd: process.cwd(),
  home: process.cwd(),
  env: {},
})
process.exit(handle.isClosed ? 7 : 1)
