import { flag, type CommandRun } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import { printJson, write } from '../../command-line/io.ts'
import { chosenStore, storeAddress } from '../../host/store-address.ts'
import { snakeNames } from '../../text/json-text.ts'

/** Creates the schema in a database, or brings it to the version of this build. */
export const migrateStore: CommandRun = async (invocation, io) => {
  const [given] = invocation.positionals
  const address =
    given === undefined ? await chosenStore(invocation, io) : await storeAddress(given, { io, option: 'store' })
  if (address?.type !== 'postgres') {
    throw usageFailure('Name the database: postgres://user@host/database.', ['tapetree store migrate --help'])
  }
  const { databaseState, migratePostgres } = await import('@tapetree/session/stores/postgres')
  const failed = (cause: unknown): never => {
    throw new Failure(exitCodes.configuration, `The schema of ${address.shown} could not be changed.`, {
      type: 'store-schema',
      why: cause instanceof Error ? cause.message : String(cause),
      cause,
    })
  }
  const before = await databaseState(address.url).catch(failed)
  await migratePostgres(address.url).catch(failed)
  const { schemaVersion } = await databaseState(address.url)
  if (flag(invocation, 'json')) await printJson(io, snakeNames({ before: before.schemaVersion, schemaVersion }))
  else {
    const change = before.schemaVersion === schemaVersion ? 'already had' : 'now has'
    await write(io.stderr, `${address.shown} ${change} version ${schemaVersion} of the schema.\n`)
  }
  return exitCodes.ok
}
