/** What the runs of a server say of who hosts them. One that hosts a session for somebody else, as a terminal does, says another name. */
export const serverOwner = 'server'
