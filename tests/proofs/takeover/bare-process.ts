// Takes over as many rows as a server takes over sessions, and does nothing else: it notices that a lease has ended, claims
// the rows and appends a line to each. What it needs more than at another time, the machine has taken from it.
import { setTimeout } from 'node:timers/promises'
import { Client } from 'pg'
import type { BareOrder, BareTimes } from './bare.ts'

/** As often and as many as a server. */
const everyMs = 500
const claimedAtOnce = 20

const url = process.argv[2]
const clients = Array.from({ length: 4 }, () => new Client({ connectionString: url }))
for (const client of clients) await client.connect()

process.on('message', (order: BareOrder) => {
  void takeOver(order).then((times) => process.send?.(times))
})
process.once('disconnect', () => process.exit(0))
process.send?.('ready')

async function takeOver({ startMs, victim, heir }: BareOrder): Promise<BareTimes> {
  const [claimer] = clients as [Client, ...Client[]]
  // At fixed times, so that two runs differ only by what the machine does.
  for (let look = 1; ; look++) {
    await setTimeout(startMs + look * everyMs - Date.now())
    const found = await claimer.query('select from public.lease where node = $1 and until < clock_timestamp()', [
      victim,
    ])
    if (found.rowCount === 1) break
  }
  let firstMs = 0
  for (;;) {
    const { rows } = await claimer.query<{ key: number }>(
      `update public.owned set node = $1, term = term + 1
       where key in (select key from public.owned where node = $2 limit ${claimedAtOnce} for update skip locked)
       returning key`,
      [heir, victim],
    )
    const keys = rows.map(({ key }) => key)
    if (keys.length === 0) return { firstMs, lastMs: Date.now() - startMs }
    await Promise.all(clients.map((client) => append(client, keys)))
    firstMs ||= Date.now() - startMs
  }
}

/** One line at a time, for as long as there are keys. */
async function append(client: Client, keys: number[]): Promise<void> {
  for (let key = keys.pop(); key !== undefined; key = keys.pop()) {
    await client.query('insert into public.line values ($1, $2)', [key, 'x'.repeat(300)])
  }
}
