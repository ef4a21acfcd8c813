import { expect, test } from 'vitest'
import { commands } from '../cli.ts'
import { commandsPage, exitCodesPage } from './reference-pages.ts'

test('the command reference matches the table (`npx vitest run -u` updates it)', async () => {
  await expect(commandsPage(commands)).toMatchFileSnapshot('../../../../docs/reference/commands.md')
})

test('the exit code reference matches the table', async () => {
  await expect(exitCodesPage()).toMatchFileSnapshot('../../../../docs/reference/exit-codes.md')
})
