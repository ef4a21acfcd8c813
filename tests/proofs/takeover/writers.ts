import type { Client } from 'pg'

/** Who has written which line, and when, as the database knows it. Nodes name themselves when they connect. */
export class Writers {
  readonly #client: Client

  private constructor(client: Client) {
    this.#client = client
  }

  /** On a connection of the administrator. */
  static async watch(client: Client): Promise<Writers> {
    await client.query(`
      create table public.written (
        key bigint not null, n int not null, writer text not null, term int not null, at timestamptz not null);
      create function public.note_writer() returns trigger language plpgsql security definer as $$
      begin
        insert into public.written
          select a.key, a.n, current_setting('application_name'), s.term, clock_timestamp()
          from added a join tapetree.session s on s.key = a.key;
        return null;
      end $$;
      create trigger note_writer after insert on tapetree.entry referencing new table as added
        for each statement execute function public.note_writer();`)
    return new Writers(client)
  }

  /** Forgets what was written so far. */
  async forget(): Promise<void> {
    await this.#client.query('truncate public.written')
  }

  /** When a node wrote its first line to each session since a time, in milliseconds. */
  async firstLines(writer: string, sinceMs: number): Promise<number[]> {
    const { rows } = await this.#client.query<{ ms: number }>(
      `select extract(epoch from min(at))::float8 * 1000 as ms from public.written
       where writer = $1 and at >= to_timestamp($2::float8 / 1000) group by key order by 1`,
      [writer, sinceMs],
    )
    return rows.map(({ ms }) => ms)
  }

  /** How many lines of a node come after a line that another one has written since a time. */
  async staleLines(writer: string, sinceMs: number): Promise<number> {
    const { rows } = await this.#client.query<{ count: number }>(
      `with taken as (
         select key, min(n) as n from public.written
         where writer <> $1 and at >= to_timestamp($2::float8 / 1000) group by key)
       select count(*)::int as count from public.written w join taken t on t.key = w.key and w.n > t.n where w.writer = $1`,
      [writer, sinceMs],
    )
    return rows[0]?.count ?? 0
  }
}
