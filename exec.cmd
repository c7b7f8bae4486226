@rem What cmd lacks: `npm start` uses it so that signals reach the server, and not a shell that dies of them.
@%*
