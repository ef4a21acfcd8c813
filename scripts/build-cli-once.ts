// Before the tests: those that run the command as a user does run the bundle.
import { buildCli } from './build-cli.ts'

export async function setup(): Promise<void> {
  await buildCli()
}
