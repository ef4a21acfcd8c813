import { fileURLToPath } from 'node:url'

/** Names another program than the one in this repository, such as one that was installed. */
export const commandVariable = 'TAPETREE_TESTED_COMMAND'

const built = fileURLToPath(new URL('../../packages/cli/dist/bin/tapetree.js', import.meta.url))

/** The command as `npm run build` makes it, for `spawn`: the program and its first arguments. */
export const builtCommand: readonly [string, ...string[]] = [process.execPath, process.env[commandVariable] ?? built]
