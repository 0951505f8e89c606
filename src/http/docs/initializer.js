// Starts Swagger UI in the page at /docs.
"use strict";

// Swagger UI has a dark theme, but does not follow the browser's preference by itself.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

// A link to the list of problems opens it. Swagger UI uses the fragment for its own links later.
if (location.hash === "#problems") document.getElementById("problems").open = true;

SwaggerUIBundle({
  url: new URL("../openapi.yaml", document.currentScript.src).href,
  dom_id: "#swagger-ui",
  deepLinking: true,
  displayRequestDuration: true,
  // The default sends the description to a validator on another host.
  validatorUrl: null,
});
