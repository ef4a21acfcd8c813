import { relative, resolve } from 'node:path'
import type { Extension } from '@tapetree/agent/extensions'

/** Nobody writes here, whatever the permissions say. */
const protectedPaths = ['.env', 'secrets', 'package-lock.json']

const protectPaths: Extension = (api) => {
  api.on('toolCall', ({ call }, { cwd }) => {
    if (call.name !== 'write' && call.name !== 'edit') return undefined
    const path = relative(cwd, resolve(cwd, String(call.input['path'])))
    const found = protectedPaths.find((each) => path === each || path.startsWith(`${each}/`))
    return found === undefined ? undefined : { block: `${found} is protected. Ask the user to change it.` }
  })
}

export default protectPaths
